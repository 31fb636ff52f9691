"""The rooms' errors as Anthropic's clients expect them: {"type": "error", "error": {"type", "message"}, "request_id"}."""

import logging
from typing import Any

from django.db import DataError, IntegrityError, OperationalError
from django.http import HttpRequest, JsonResponse

from memoryhub.common import errors
from memoryhub.long_term_memory.services.places import PathBlocked
from memoryhub.long_term_memory.services.writer import PathTaken

logger = logging.getLogger(__name__)

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    507: "api_error",
}
# What breaks a rule is 400 there, and a failed precondition is a conflict.
_STATUS = {412: 409, 422: 400, 428: 400}


class BadRequest(errors.Malformed):
    slug = "bad-request"
    title = "Bad request"


def error_response(request: HttpRequest, error: Exception) -> JsonResponse:
    """The answer for an error, also for one that nobody expected."""
    known = _as_hub_error(error)
    if known is None:
        logger.exception("unexpected error at %s %s", request.method, request.path, exc_info=error)
        known = errors.HubError("This is a fault of the hub; its log has the details.")
    status = _STATUS.get(known.status, known.status)
    body: dict[str, Any] = {"type": _type_of(known, status), "message": str(known.detail)}
    if isinstance(known, PathTaken | PathBlocked):
        body["conflicting_memory_id"] = known.extra.get("conflicting_id")
        body["conflicting_path"] = known.extra.get("conflicting_path")
    response = json_response(request, {"type": "error", "error": body, "request_id": request_id(request)}, status)
    retry_after = getattr(known, "retry_after_seconds", None)
    if retry_after is not None:
        response["Retry-After"] = str(retry_after)
    return response


def json_response(request: HttpRequest, body: Any, status: int = 200) -> JsonResponse:
    """A JSON answer that carries the request's id as Anthropic's does."""
    response = JsonResponse(body, status=status, safe=False, json_dumps_params={"ensure_ascii": False})
    response["request-id"] = request_id(request)
    return response


def request_id(request: HttpRequest) -> str:
    return getattr(request, "request_id", "")


def _type_of(error: errors.HubError, status: int) -> str:
    if error.status == 412:
        return "memory_precondition_failed_error"
    if isinstance(error, PathTaken | PathBlocked):
        return "memory_path_conflict_error"
    return _TYPES.get(status, "api_error")


def _as_hub_error(error: Exception) -> errors.HubError | None:
    if isinstance(error, errors.HubError):
        return error
    if isinstance(error, OperationalError):
        if "full" in str(error).lower():
            return errors.OutOfSpace("The disk is full; what was stored before is intact.")
        logger.error("the database did not answer: %s", error)
        return errors.Unavailable("The database is busy; try again in a moment.", retry_after_seconds=2)
    if isinstance(error, IntegrityError):
        return errors.Conflict("Somebody else wrote here at the same moment; read again and try again.")
    if isinstance(error, DataError | OverflowError):
        return BadRequest("A value is outside what can be stored.")
    return None
