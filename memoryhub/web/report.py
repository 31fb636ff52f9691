"""The cost report."""

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from memoryhub.web.access import MemberRequest, member


@require_GET
@member("viewer")
def report(request: MemberRequest) -> HttpResponse:
    """Show it."""
    return render(request, "hub/overview.html", {})


report_csv = report
