"""Two ways in: browsers pass the middleware of pages; a program with a key goes straight to its view."""

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import translation
from django.utils.module_loading import import_string

from memoryhub.middleware import GetResponse

PROGRAM_PATHS = ("/api/", "/anthropic/", "/mcp", "/healthz", "/readyz", "/metrics")
_PAGES_BELOW = ("/api/v1/docs",)  # the API's own page about itself
MOST_UNREAD = 256 * 1024  # bytes; of a longer body the connection is worth less than the reading
PROGRAM_HEADERS = (  # an answer for a program shows nothing in a browser
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
)


def is_for_program(request: HttpRequest) -> bool:
    """Tell a program's request from a browser's: below a program's path, with a key or without a session cookie."""
    path = request.path_info
    if not path.startswith(PROGRAM_PATHS) or path.startswith(_PAGES_BELOW):
        return False
    return "HTTP_AUTHORIZATION" in request.META or settings.SESSION_COOKIE_NAME not in request.COOKIES


def read_what_is_left(request: HttpRequest) -> None:
    """Read a short body that nobody asked for: an answer may be clear without it (no key, an archived store).

    The server closes a connection whose request was not read to its end, and the client's next request on it would get
    no answer, or this one's answer would be lost.
    """
    length = request.META.get("CONTENT_LENGTH") or "0"
    unread = not getattr(request, "_read_started", True)
    if unread and length.isdigit() and 0 < int(length) <= MOST_UNREAD:
        with suppress(OSError):  # the client is gone
            request.read(int(length))


class DoorMiddleware:
    """Leads browsers through `settings.PAGE_MIDDLEWARE`: language, session, CSRF, messages, content policy.

    A program's request has no `user` and no `session`; its Host is checked, its answer says its length and is not shown as
    a page.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self._program = get_response
        self._view_checks: list[Any] = []
        handler: Any = get_response
        for name in reversed(settings.PAGE_MIDDLEWARE):
            part = import_string(name)(handler)
            if hasattr(part, "process_exception") or hasattr(part, "process_template_response"):
                raise ImproperlyConfigured(f"{name} has a hook that pages don't call.")
            if hasattr(part, "process_view"):
                self._view_checks.insert(0, part.process_view)
            handler = convert_exception_to_response(part)
        self._page: GetResponse = handler

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not is_for_program(request):
            try:
                page = self._page(request)
            finally:
                translation.deactivate()  # this thread's next request may be a program's
            read_what_is_left(request)
            return page
        request.get_host()  # raises for a name that is not ours
        response = self._program(request)
        read_what_is_left(request)
        if isinstance(response, HttpResponse) and "Content-Length" not in response:
            response["Content-Length"] = str(len(response.content))
        for name, value in PROGRAM_HEADERS:
            response.headers.setdefault(name, value)
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponseBase | None:
        """Let the pages' middleware look at the view, as Django does for its own list."""
        if is_for_program(request):
            return None
        for check in self._view_checks:
            response: HttpResponseBase | None = check(request, view, args, kwargs)
            if response is not None:
                return response
        return None
