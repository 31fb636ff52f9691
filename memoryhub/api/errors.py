"""The one place where the rooms' errors become HTTP: RFC 9457 problem+json, always of the same shape."""

import json
import logging
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import DataError, IntegrityError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from memoryhub.common import errors

logger = logging.getLogger(__name__)


def problem_response(request: HttpRequest, error: errors.HubError) -> HttpResponse:
    """Return the problem body of an error: type, title, status, detail, errors, request_id, and what the error adds."""
    problem = {
        "type": f"/problems/{error.slug}",
        "title": str(error.title),
        "status": error.status,
        "detail": str(error.detail),
        "errors": error.errors,
        "request_id": getattr(request, "request_id", ""),
        **error.extra,
    }
    body = json.dumps(problem, ensure_ascii=False, default=str)
    response = HttpResponse(body, status=error.status, content_type="application/problem+json")
    if error.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    retry_after = getattr(error, "retry_after_seconds", None)
    if retry_after is not None:
        response["Retry-After"] = str(retry_after)
    return response


def as_hub_error(error: Exception) -> errors.HubError | None:
    """Return what a database or framework error means to the caller, None where it is a fault of ours."""
    if isinstance(error, errors.HubError):
        return error
    if isinstance(error, Http404):
        return errors.NotFound("There is nothing at this address.")
    if isinstance(error, RequestDataTooBig):
        return errors.TooLarge("The body is larger than this path takes.")
    if isinstance(error, OperationalError):
        return _database_trouble(error)
    if isinstance(error, IntegrityError):
        logger.warning("two writes met: %s", error)
        return errors.Conflict("Somebody else wrote the same at the same moment; read again and try again.")
    if isinstance(error, DataError | OverflowError):
        return errors.Invalid("A value is outside what can be stored.")
    return None


def _database_trouble(error: OperationalError) -> errors.HubError:
    message = str(error).lower()
    if "full" in message or "no space" in message:
        return errors.OutOfSpace("What was stored before is intact; free some space and try again.")
    logger.error("the database did not answer: %s", error)
    return errors.Unavailable("The database is busy or out of reach; try again in a moment.", retry_after_seconds=2)


def validation_problem(error: ValidationError) -> errors.Invalid:
    """Return one entry per broken field: where it stands, and what is wrong."""
    entries = []
    for one in error.errors:
        place = [str(part) for part in one.get("loc", ())]
        entries.append({"in": place[0] if place else "", "field": ".".join(place[1:]), "message": one.get("msg", "")})
    first = entries[0] if entries else {"field": "", "message": ""}
    return errors.Invalid(f"{first['field'] or 'The request'}: {first['message']}", errors=entries)


def install(api: NinjaAPI) -> None:
    """Register the handlers on the API."""

    def on_hub_error(request: HttpRequest, error: Any) -> HttpResponse:
        return problem_response(request, error)

    def on_validation_error(request: HttpRequest, error: Any) -> HttpResponse:
        return problem_response(request, validation_problem(error))

    def on_http_error(request: HttpRequest, error: Any) -> HttpResponse:
        held = getattr(request, "body_problem", None)
        if held is not None:
            return problem_response(request, held)
        kinds = {400: errors.Malformed, 401: errors.Unauthenticated, 403: errors.Forbidden, 404: errors.NotFound}
        return problem_response(request, kinds.get(error.status_code, errors.HubError)(str(error)))

    def on_any_error(request: HttpRequest, error: Any) -> HttpResponse:
        known = as_hub_error(error)
        if known is not None:
            return problem_response(request, known)
        logger.exception("unexpected error at %s %s", request.method, request.path)
        return problem_response(request, errors.HubError("This is a fault of the hub; its log has the details."))

    api.add_exception_handler(errors.HubError, on_hub_error)
    api.add_exception_handler(ValidationError, on_validation_error)
    api.add_exception_handler(HttpError, on_http_error)
    api.add_exception_handler(Http404, on_any_error)
    api.add_exception_handler(Exception, on_any_error)
