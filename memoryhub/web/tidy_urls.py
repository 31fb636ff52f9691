"""Addresses that say only what differs from the default: a form's empty fields are left out."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from memoryhub.web.htmx import wants_part


def tidied(request: HttpRequest) -> HttpResponse | None:
    """Return a redirect to the same page without empty parameters, or None where there are none."""
    if wants_part(request) or not any(value == "" for values in request.GET.lists() for value in values[1]):
        return None
    query = request.GET.copy()
    for name in list(query):
        kept = [value for value in query.getlist(name) if value]
        if kept:
            query.setlist(name, kept)
        else:
            del query[name]
    return redirect(f"{request.path}?{query.urlencode()}" if query else request.path)
