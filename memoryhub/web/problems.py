"""Pages for addresses that don't exist and for what nobody foresaw."""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from memoryhub.web.access import error_page


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return error_page(request, 404, _("Not found"), _("There is no such page, or it belongs to another workspace."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403."""
    return error_page(request, 403, _("Not allowed"), _("You may not do this."))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400."""
    return error_page(request, 400, _("Malformed request"), _("This address or form could not be read."))


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token: stale page, cookies off, or a forged request."""
    detail = _("The form had expired, or cookies are off. Go back, reload the page and try again.")
    return error_page(request, 403, _("Not allowed"), detail)


def server_error(request: HttpRequest) -> HttpResponse:
    """500; the log has the rest under the request's id."""
    return error_page(request, 500, _("Something went wrong"), _("The hub has logged it. Please try again."))
