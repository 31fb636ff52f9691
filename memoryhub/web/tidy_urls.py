"""Addresses that say only what differs from the default: a form's empty fields are left out."""

from functools import wraps
from typing import Any

from django.http import HttpResponseBase
from django.shortcuts import redirect

from memoryhub.web.access import MemberRequest, View
from memoryhub.web.htmx import wants_part


def tidied(view: View) -> View:
    """Answer a page whose address has empty parameters by a redirect to the one without; write it below @member."""

    @wraps(view)
    def opened(request: MemberRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        empty = any(value == "" for values in request.GET.lists() for value in values[1])
        if request.method != "GET" or wants_part(request) or not empty:
            return view(request, *args, **kwargs)
        query = request.GET.copy()
        for name in list(query):
            kept = [value for value in query.getlist(name) if value]
            if kept:
                query.setlist(name, kept)
            else:
                del query[name]
        return redirect(f"{request.path}?{query.urlencode()}" if query else request.path)

    return opened
