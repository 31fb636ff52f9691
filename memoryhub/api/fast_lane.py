"""The two requests that agents send most, the look-up and the put of a tool result, answered before Django's handler.

The lane takes only what it fully understands: a valid key that is bound to nothing and may do it, and a plain body.
Everything else goes the usual way, which gives the same answers and says what is wrong with a request.
"""

import io
import logging
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host

from memoryhub import logs
from memoryhub.api.errors import as_hub_error, problem_response
from memoryhub.api.parser import parse_json
from memoryhub.api.schemas.tool_results import MAX_FACTS, render_answer, render_stored
from memoryhub.common import errors
from memoryhub.doors import PROGRAM_HEADERS
from memoryhub.flows.store_tool_result import put_and_announce
from memoryhub.middleware import request_id_from
from memoryhub.session_cache.queries.sessions import find_known_session
from memoryhub.session_cache.services.calls import ToolCall, parse_given
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.sessions import open_session
from memoryhub.session_cache.services.store import ToolValue
from memoryhub.workspaces import key_cache
from memoryhub.workspaces.principals import Principal

logger = logging.getLogger(__name__)
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
_PATH = re.compile(r"/api/v1/sessions/([^/]+)/tool-results(/lookup)?")
_CALL = frozenset({"tool", "params", "tool_version", "root", "env"})
_LOOKUP = _CALL | {"fingerprints"}
_PUT = _CALL | {"value", "ttl_seconds", "depends_on", "cost_ms"}
_STATUS = {200: "200 OK", 201: "201 Created"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request that the lane takes."""

    principal: Principal
    sid: str
    body: dict[str, Any]
    is_lookup: bool


def with_fast_lane(application: Callable[[Environ, StartResponse], Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """Return a WSGI application that answers the two requests itself and leaves all others to the given one."""

    def served(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        asked = _read(environ) if environ["REQUEST_METHOD"] in ("POST", "PUT") else None
        if asked is None:
            return application(environ, start_response)
        request_id = request_id_from(environ)
        token = logs.request_id.set(request_id)
        try:
            status, headers, body = _answer(asked, request_id)
        finally:
            logs.request_id.reset(token)
            _leave_database()
        start_response(
            status, [*headers, *PROGRAM_HEADERS, ("Content-Length", str(len(body))), ("X-Request-Id", request_id)]
        )
        return [body]

    return served


def _leave_database() -> None:
    """What Django does after a request: give the connection back, or drop it where it broke."""
    if not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()


def _answer(asked: _Asked, request_id: str) -> tuple[str, list[tuple[str, str]], bytes]:
    try:
        status, body = _look_up(asked) if asked.is_lookup else _put(asked)
    except (errors.HubError, DatabaseError) as error:
        return _problem(as_hub_error(error) or errors.HubError(), request_id)
    except Exception:
        logger.exception("unexpected error at %s", asked.sid)
        return _problem(errors.HubError("This is a fault of the hub; its log has the details."), request_id)
    return _STATUS[status], [("Content-Type", "application/json")], body


def _problem(error: errors.HubError, request_id: str) -> tuple[str, list[tuple[str, str]], bytes]:
    request = HttpRequest()
    request.request_id = request_id  # type: ignore[attr-defined]
    response: HttpResponse = problem_response(request, error)
    return f"{response.status_code} {response.reason_phrase}", list(response.items()), response.content


def _read(environ: Environ) -> _Asked | None:
    """Return the request, or None for one that goes the usual way, its body still to be read."""
    match = _PATH.fullmatch(environ["PATH_INFO"])
    if match is None or (match[2] is None) is (environ["REQUEST_METHOD"] == "POST") or not match[1].isascii():
        return None
    length = environ.get("CONTENT_LENGTH") or ""
    if not (length.isascii() and length.isdigit()) or int(length) > settings.API_BODY_LIMIT_BYTES:
        return None
    if "HTTP_IDEMPOTENCY_KEY" in environ or settings.HTTPS or not _is_our_host(environ.get("HTTP_HOST", "")):
        return None
    is_lookup = match[2] is not None
    principal = _caller(environ.get("HTTP_AUTHORIZATION", ""), "cache:read" if is_lookup else "cache:write")
    if principal is None:
        return None
    raw = environ["wsgi.input"].read(int(length))
    environ["wsgi.input"] = io.BytesIO(raw)
    try:
        body = parse_json(raw)
    except errors.HubError:
        return None
    if not _is_plain(body, _LOOKUP if is_lookup else _PUT):
        return None
    return _Asked(principal, match[1], body, is_lookup)


@lru_cache(maxsize=64)
def _is_our_host(host: str) -> bool:
    return validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


def _caller(header: str, scope: str) -> Principal | None:
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        principal = key_cache.authenticate(token.strip())
    except DatabaseError:  # the usual way says what is the matter
        return None
    if principal is None or principal.is_bound or not principal.allows(scope):
        return None
    return principal


def _is_plain(body: Any, fields: frozenset[str]) -> bool:
    """Tell whether the body needs no more explaining than the schema would give it."""
    if not isinstance(body, dict) or not body.keys() <= fields:
        return False
    get = body.get
    return (
        _is_text(get("tool"), 200)
        and bool(get("tool"))
        and _is_text(get("tool_version", ""), 200)
        and _is_text(get("root", ""), 500)
        and isinstance(get("env", {}), dict)
        and _are_facts(get("fingerprints", []))
        and _are_facts(get("depends_on", []))
        and _is_number(get("ttl_seconds"))
        and _is_number(get("cost_ms"))
    )


def _is_text(value: Any, longest: int) -> bool:
    return isinstance(value, str) and len(value) <= longest


def _are_facts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_FACTS and all(isinstance(fact, dict) for fact in value)


def _is_number(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def _call(asked: _Asked) -> ToolCall:
    body = asked.body
    return ToolCall(
        asked.sid,
        body["tool"],
        body.get("params"),
        body.get("tool_version", ""),
        body.get("root", ""),
        body.get("env", {}),
    )


def _look_up(asked: _Asked) -> tuple[int, bytes]:
    shown = asked.body.get("fingerprints")
    answer = look_up(
        workspace=asked.principal.workspace,
        call=_call(asked),
        options=LookupOptions(shown=parse_given(shown)) if shown else _NO_OPTIONS,
        may_write=asked.principal.allows("cache:write"),
    )
    return 200, render_answer(answer)


_NO_OPTIONS = LookupOptions()


def _put(asked: _Asked) -> tuple[int, bytes]:
    body, principal = asked.body, asked.principal
    depends_on = body.get("depends_on")
    given = ToolValue(
        body.get("value"),
        ttl_seconds=body.get("ttl_seconds"),
        depends_on=parse_given(depends_on) if depends_on else (),
        cost_ms=body.get("cost_ms"),
    )
    call = _call(asked)
    session = find_known_session(principal, asked.sid) or open_session(principal=principal, sid=asked.sid)
    done, invalidated = put_and_announce(principal=principal, session=session, call=call, given=given)
    return 201 if done.stored else 200, render_stored(done, invalidated)
