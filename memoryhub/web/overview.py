"""The first page: how the three layers are today and over the last week, and what agents wrote."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memoryhub.web.access import MemberRequest, member


@require_GET
@member("viewer")
def overview(request: MemberRequest) -> HttpResponse:
    """Show the figures and the feed."""
    return render(request, "hub/overview.html", {})
