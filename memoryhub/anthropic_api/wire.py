"""One endpoint of this door: who calls, which method, what the query and the body say, and errors in one form."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, NoReturn

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from memoryhub.anthropic_api.errors import BadRequest, error_response, json_response
from memoryhub.common import errors
from memoryhub.workspaces import key_cache
from memoryhub.workspaces.principals import Principal

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_FULL_LIMIT = 20
View = Literal["basic", "full"]


class BadKey(errors.Unauthenticated):
    slug = "bad-key"
    title = "This key is not valid"


class WrongMethod(errors.HubError):
    status = 405
    slug = "method-not-allowed"
    title = "Method not allowed"


class WireRequest(HttpRequest):
    """A request that passed the door."""

    principal: Principal


Handler = Callable[..., Any]


def endpoint(**handlers: tuple[str, Handler]) -> Callable[..., HttpResponse]:
    """A view of GET=(scope, handler), POST=...; a handler returns the body of its answer."""

    @csrf_exempt
    def view(request: HttpRequest, **path: str) -> HttpResponse:
        try:
            if request.method not in handlers:
                raise WrongMethod(f"This address answers to {', '.join(handlers)}.")
            if "\x00" in f"{request.path_info}{''.join(request.GET.values())}":  # type: ignore[arg-type]
                raise BadRequest("No id or parameter holds the character NUL.")
            scope, handler = handlers[request.method]
            principal = identify(request)
            principal.require(scope)
            request.principal = principal  # type: ignore[attr-defined]
            return json_response(request, handler(request, **path))
        except Exception as error:  # whatever happens, the client gets a body it can read
            response = error_response(request, error)
            if isinstance(error, WrongMethod):
                response["Allow"] = ", ".join(handlers)
            return response

    return view


def identify(request: HttpRequest) -> Principal:
    """Whoever holds the hub's key in `X-Api-Key` or as Bearer, whichever of the two is one."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    given = [request.headers.get("X-Api-Key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    for key in filter(None, given):
        principal = key_cache.authenticate(key)
        if principal is not None:
            return principal
    raise BadKey("Send a key of this hub, mh_..., as X-Api-Key or as Bearer.")


# --- the query -------------------------------------------------------------------------------------------------------
def read_view(request: HttpRequest, default: View) -> View:
    value = request.GET.get("view", default)
    if value == "basic":
        return "basic"
    if value == "full":
        return "full"
    raise BadRequest("view is basic or full.")


def read_limit(request: HttpRequest, view: View = "basic") -> int:
    """How many items a page has; with contents at most 20."""
    limit = read_number(request, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    return min(limit, MAX_FULL_LIMIT) if view == "full" else limit


def read_number(request: HttpRequest, name: str, default: int, low: int, high: int) -> int:
    text = request.GET.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high):
        raise BadRequest(f"{name} is a whole number from {low} to {high}.")
    return int(text)


def read_flag(request: HttpRequest, name: str) -> bool:
    value = request.GET.get(name, "false")
    if value not in ("true", "false"):
        raise BadRequest(f"{name} is true or false.")
    return value == "true"


def read_moment(request: HttpRequest, name: str) -> datetime | None:
    text = request.GET.get(name)
    if text is None:
        return None
    try:
        # A plus that was not encoded has become a space.
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRequest(f"{name} is a time such as 2026-11-29T12:00:00Z.") from None


# --- the body --------------------------------------------------------------------------------------------------------
def read_body(request: HttpRequest, *fields: str) -> dict[str, Any]:
    """The JSON object of a request; fields that nobody reads are refused, so that a misspelt one is noticed."""
    if not request.body:
        return {}
    try:
        body = json.loads(request.body.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except (ValueError, RecursionError):
        raise BadRequest("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body is a JSON object.")
    unknown = sorted(body.keys() - set(fields))
    if unknown:
        raise BadRequest(f"{unknown[0][:80]}: extra inputs are not permitted.")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read_text(body: dict[str, Any], name: str, *, required: bool = False) -> str | None:
    """A text of the body; null counts as left out."""
    value = body.get(name)
    if value is None:
        if required:
            raise BadRequest(f"{name}: field required.")
        return None
    if not isinstance(value, str):
        raise BadRequest(f"{name}: input should be a text.")
    if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise BadRequest(f"{name}: the text holds a character that can't be stored.")
    return value
