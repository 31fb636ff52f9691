"""What holds for every request, whichever door it knocks at: its id, and how large its body may be."""

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from memoryhub import logs
from memoryhub.common import ids

GetResponse = Callable[[HttpRequest], HttpResponseBase]
_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id_from(environ: Mapping[str, Any]) -> str:
    """Return the id that the caller gave its request, where it is harmless in logs and headers, else a new one."""
    supplied = environ.get("HTTP_X_REQUEST_ID", "")
    return supplied if _SAFE_REQUEST_ID.fullmatch(supplied) else ids.new_id("req")


class RequestIdMiddleware:
    """Echo the caller's `X-Request-Id`, or make one; log lines and problem bodies carry it."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_id_from(request.META)
        request.request_id = request_id  # type: ignore[attr-defined]
        token = logs.request_id.set(request_id)
        try:
            response = self.get_response(request)
        finally:
            logs.request_id.reset(token)
        response["X-Request-Id"] = request_id
        return response


# How much of a body that is refused is still taken in, so that its sender hears why; beyond that the connection ends.
DRAINED_BYTES = 128 * 1024 * 1024
DRAIN_PIECE_BYTES = 256 * 1024
# The first prefix that matches decides. Uploads are streamed to disk; everything else is held in memory.
_BODY_LIMITS = (
    ("/api/v1/memories/import", settings.IMPORT_BODY_LIMIT_BYTES),
    ("/api/v1/prompt-cache/import", settings.IMPORT_BODY_LIMIT_BYTES),
    ("/memories/import", settings.IMPORT_BODY_LIMIT_BYTES),
    ("/report/import", settings.IMPORT_BODY_LIMIT_BYTES),
    ("/anthropic/", settings.PROXY_BODY_LIMIT_BYTES),
    ("", settings.API_BODY_LIMIT_BYTES),
)


def body_limit_bytes(path: str) -> int:
    """Return how many bytes a request to this path may carry."""
    return next(limit for prefix, limit in _BODY_LIMITS if path.startswith(prefix))


class BodyLimitMiddleware:
    """Refuse a body above its route's limit before anything reads it: 413, and nothing half done."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        limit = body_limit_bytes(request.path_info)
        if length > limit:
            _drain(request)
            return _too_large(request, limit)
        return self.get_response(request)


def _drain(request: HttpRequest) -> None:
    """Read what is still coming and drop it: most clients look for an answer only once they have sent everything."""
    left = DRAINED_BYTES
    with contextlib.suppress(OSError):
        while left > 0 and (piece := request.read(DRAIN_PIECE_BYTES)):
            left -= len(piece)


def _too_large(request: HttpRequest, limit: int) -> HttpResponse:
    detail = f"The body is larger than the {limit // (1024 * 1024)} MiB that this path takes."
    if request.path_info.startswith("/anthropic/"):
        error = {"type": "request_too_large", "message": detail}
        return JsonResponse({"type": "error", "error": error, "request_id": request.request_id}, status=413)  # type: ignore[attr-defined]
    problem = {
        "type": "/problems/too-large",
        "title": "Too large",
        "status": 413,
        "detail": detail,
        "errors": [],
        "request_id": request.request_id,  # type: ignore[attr-defined]
    }
    return JsonResponse(problem, status=413, content_type="application/problem+json")
