"""The pass-through: Anthropic's clients talk to the provider through the hub, which notes what each response used.

The body goes upstream byte for byte, the answer comes back as it arrives. The hub's own key travels in `X-MemoryHub-Key` or in
the path; the provider's key is passed on and never kept. Recording happens elsewhere and later: no answer waits for it.
"""

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from urllib.parse import quote, urlsplit

import httpx2
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from memoryhub.anthropic_api.errors import error_response
from memoryhub.anthropic_api.wire import WrongMethod
from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.domain.response_stream import ResponseReader
from memoryhub.prompt_cache.services.spool import Note, get_spool
from memoryhub.workspaces import key_cache
from memoryhub.workspaces.principals import Principal

logger = logging.getLogger(__name__)
HUB_KEY_PREFIX = "mh_"
CONNECT_SECONDS = 10.0
RETRY_AFTER_SECONDS = 2
# Half of the streams that the server has threads for; pages and clients keep the rest.
_places = threading.BoundedSemaphore(max(1, settings.MAX_STREAMS // 2))
_HUB_KEY = re.compile(r"(?<![A-Za-z0-9])mh_[A-Za-z0-9]{4,}")
_HOP_BY_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
    ]
)
_OURS = frozenset(
    ["host", "content-length", "accept-encoding", "cookie", "forwarded", "via", "x-real-ip", "x-request-id", "expect"]
)
_OUR_PREFIXES = ("x-memoryhub-", "x-forwarded-")
_NOT_PASSED_BACK = _HOP_BY_HOP | frozenset(
    ["content-length", "set-cookie", "server", "date", "strict-transport-security", "alt-svc"]
)
_PLACES = {"session": 200, "agent": 200, "project": 500, "user": 200}


class NoHubKey(errors.Unauthenticated):
    slug = "no-hub-key"
    title = "The hub's key is missing"


class NoProviderKey(errors.Unauthenticated):
    slug = "no-provider-key"
    title = "The provider's key is missing"


class ProxyIsFull(errors.Unavailable):
    slug = "proxy-is-full"
    title = "Too many open requests"


class UpstreamOutOfReach(errors.HubError):
    status = 502
    slug = "upstream"
    title = "The provider can't be reached"


class UpstreamTooSlow(errors.HubError):
    status = 504
    slug = "upstream-timeout"
    title = "The provider did not answer in time"


@csrf_exempt
def messages(request: HttpRequest, hub_key: str = "") -> HttpResponseBase:
    """POST /v1/messages: passed through, and its usage noted."""
    return _pass_through(request, "/v1/messages", "POST", hub_key, recorded=True)


@csrf_exempt
def count_tokens(request: HttpRequest, hub_key: str = "") -> HttpResponseBase:
    """POST /v1/messages/count_tokens: passed through."""
    return _pass_through(request, "/v1/messages/count_tokens", "POST", hub_key)


@csrf_exempt
def models(request: HttpRequest, hub_key: str = "", model: str = "") -> HttpResponseBase:
    """GET /v1/models and /v1/models/<id>: passed through."""
    path = f"/v1/models/{quote(model, safe='')}" if model else "/v1/models"
    return _pass_through(request, path, "GET", hub_key)


def _pass_through(
    request: HttpRequest, path: str, method: str, hub_key: str, *, recorded: bool = False
) -> HttpResponseBase:
    """1. who calls and with which provider's key  2. a place among the open requests  3. upstream and back."""
    started_at = clock.now()
    try:
        if request.method != method:
            raise WrongMethod(f"This address answers to {method}.")
        principal = _principal_of(request, hub_key)
        headers = _upstream_headers(request)
        if not _places.acquire(blocking=False):
            raise ProxyIsFull("Too many requests are open here.", retry_after_seconds=RETRY_AFTER_SECONDS)
    except errors.HubError as error:
        return error_response(request, error)
    place = _Place()
    try:
        url = _upstream_url(settings.ANTHROPIC_UPSTREAM.rstrip("/") + path + _query_of(request))
        body = request.body if method == "POST" else b""
        call = _Call(principal, request, body, started_at) if recorded else None
        upstream = httpx2.Request(method, url, headers=headers, content=body)
        answer = http_client().send(upstream, stream=True)
        return _answer(answer, call, place)
    except httpx2.TimeoutException:
        place.leave()
        return error_response(request, UpstreamTooSlow("The provider did not answer in time."))
    except httpx2.HTTPError as error:
        place.leave()
        logger.warning("upstream failed: %s", type(error).__name__)
        return error_response(request, UpstreamOutOfReach("The provider can't be reached from this hub."))
    except BaseException:
        place.leave()
        raise


def _answer(answer: httpx2.Response, call: "_Call | None", place: "_Place") -> HttpResponseBase:
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        connection.close()  # a stream holds no connection to the database
        response: HttpResponseBase = StreamingHttpResponse(_Stream(answer, call, place), status=answer.status_code)
        response["Cache-Control"] = "no-cache"
        response["X-Accel-Buffering"] = "no"
    else:
        response = _whole(answer, call, place)
    del response["Content-Type"]
    for name, value in answer.headers.multi_items():
        if name.lower() not in _NOT_PASSED_BACK and not (name.lower() == "content-encoding" and value == "identity"):
            response[name] = value
    return response


def _whole(answer: httpx2.Response, call: "_Call | None", place: "_Place") -> HttpResponse:
    try:
        first_byte_at = clock.now()
        raw = b"".join(answer.iter_raw())
    finally:
        answer.close()
        place.leave()
    if call is not None and answer.status_code < 300:
        reader = ResponseReader(is_stream=False)
        reader.read_body(_decoded(raw, answer))
        call.note(reader, answer, first_byte_at)
    return HttpResponse(raw, status=answer.status_code)


def _decoded(raw: bytes, answer: httpx2.Response) -> bytes:
    """Return the body as text bytes; upstream was asked not to compress, but may have."""
    if answer.headers.get("content-encoding", "identity") == "identity":
        return raw
    with suppress(httpx2.HTTPError, ValueError):
        return httpx2.Response(
            200, headers={"content-encoding": answer.headers["content-encoding"]}, content=raw
        ).content
    return b""


_CUT_EVENT = (
    b'event: error\ndata: {"type":"error","error":{"type":"api_error",'
    b'"message":"The provider closed the stream before the response was complete."}}\n\n'
)


class _Stream:
    """Passes pieces on as they come. However it ends, upstream is closed and what is known of the usage is noted, once.

    Not a generator: the server closes a stream whose client left before the first piece, and a generator that was never
    begun would not hear of it.
    """

    def __init__(self, answer: httpx2.Response, call: "_Call | None", place: "_Place") -> None:
        self._answer, self._call, self._place = answer, call, place
        self._pieces = answer.iter_raw()
        self._reader = ResponseReader(is_stream=True)
        self._first_byte_at: datetime | None = None
        self._ended = False

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._ended:
            raise StopIteration
        try:
            piece = next(self._pieces)
        except StopIteration:
            self.close()
            raise
        except httpx2.HTTPError as error:
            logger.warning("a stream was cut by upstream: %s", type(error).__name__)
            self.close()
            return _CUT_EVENT
        if self._call is not None:
            self._read(piece, self._call)
        return piece

    def _read(self, piece: bytes, call: "_Call") -> None:
        self._first_byte_at = self._first_byte_at or clock.now()
        knew = self._reader.knows_usage
        self._reader.feed(piece)
        if self._reader.knows_usage and not knew:
            call.note_running(self._reader, self._answer, self._first_byte_at)

    def close(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._answer.close()
        self._place.leave()
        if self._call is not None:
            self._call.note(self._reader, self._answer, self._first_byte_at)


class _Place:
    """One of the open requests; left once, however the request ends."""

    def __init__(self) -> None:
        self._held = True

    def leave(self) -> None:
        if self._held:
            self._held = False
            _places.release()


class _Call:
    """What a request tells of itself, for its record."""

    def __init__(self, principal: Principal, request: HttpRequest, body: bytes, started_at: datetime) -> None:
        self.workspace_id = principal.workspace.pk
        self.body = body
        self.started_at = started_at
        self.betas = request.headers.get("anthropic-beta", "")[:2000]
        bound = {"agent": principal.binding.agent, "project": principal.binding.project, "user": principal.binding.user}
        said = {name: request.headers.get(f"X-MemoryHub-{name}", "")[:longest] for name, longest in _PLACES.items()}
        self.place = {name: bound.get(name) or text for name, text in said.items()}

    def note_running(self, reader: ResponseReader, answer: httpx2.Response, first_byte_at: datetime | None) -> None:
        """Note a stream whose usage has begun to be known."""
        self._guarded(lambda: get_spool().note_running(self._note(reader, answer, first_byte_at, None)))

    def note(self, reader: ResponseReader, answer: httpx2.Response, first_byte_at: datetime | None) -> None:
        """Note a response that has ended; without a message there is nothing to bill."""
        if reader.knows_usage:
            self._guarded(lambda: get_spool().note(self._note(reader, answer, first_byte_at, clock.now())))

    def _note(
        self, reader: ResponseReader, answer: httpx2.Response, first_byte_at: datetime | None, ended_at: datetime | None
    ) -> Note:
        report = UsageReport(
            model=reader.model or "unknown",
            usage=reader.usage,
            message_id=reader.message_id,
            request_id=answer.headers.get("request-id", "")[:200],
            source="proxy",
            convention="anthropic",
            started_at=self.started_at,
            first_byte_at=first_byte_at,
            ended_at=ended_at,
            diagnostics=reader.diagnostics,
            cut=not reader.complete,
            **self.place,
        )
        no_change = reader.diagnostics_given and reader.diagnostics is None
        return Note(self.workspace_id, report, self.body if ended_at else None, no_change, self.betas)

    @staticmethod
    def _guarded(write: Callable[[], None]) -> None:
        """Whatever goes wrong with the record, the answer is not touched by it."""
        try:
            write()
        except Exception:
            logger.exception("a proxied response could not be noted")


# --- Keys ------------------------------------------------------------------------------------------------------------


def _principal_of(request: HttpRequest, path_key: str) -> Principal:
    """Return who holds the hub's key: from its header, from the path, or from where the provider's key belongs."""
    token = request.headers.get("X-MemoryHub-Key", "") or path_key
    if not token:
        token = next((key for key in _credentials(request) if key.startswith(HUB_KEY_PREFIX)), "")
    if not token:
        raise NoHubKey("Send a key of this hub, mh_..., in the header X-MemoryHub-Key.")
    principal = key_cache.authenticate(token.strip())
    if principal is None:
        raise NoHubKey("The key in X-MemoryHub-Key is not valid in this hub.")
    principal.require("usage:write")
    return principal


def _credentials(request: HttpRequest) -> list[str]:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return [key for key in (request.headers.get("X-Api-Key", "").strip(), bearer) if key]


def _upstream_headers(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the caller's headers for upstream, without hop-by-hop ones, without ours, and without any key of the hub."""
    kept_back = _HOP_BY_HOP | _OURS
    if "HTTP_CONNECTION" in request.META:
        kept_back |= {token.strip().lower() for token in request.META["HTTP_CONNECTION"].split(",")}
    headers, has_key = [], False
    for name, value in request.headers.items():
        lower = name.lower()
        if lower in kept_back or lower.startswith(_OUR_PREFIXES) or _HUB_KEY.search(value):
            continue
        if lower == "content-type" and not value:
            continue
        has_key = has_key or lower in ("authorization", "x-api-key")
        headers.append((name, value))
    headers.append(("Accept-Encoding", "identity"))
    if not has_key:
        if not settings.ANTHROPIC_API_KEY:
            raise NoProviderKey(
                "Send the provider's key where it belongs (Authorization or X-Api-Key) and the hub's key in X-MemoryHub-Key."
            )
        headers.append(("X-Api-Key", settings.ANTHROPIC_API_KEY))
    return headers


@lru_cache(maxsize=256)
def _upstream_url(text: str) -> httpx2.URL:
    """Return the parsed address; most requests go to the same few."""
    return httpx2.URL(text)


def _query_of(request: HttpRequest) -> str:
    query = request.META.get("QUERY_STRING", "")
    return f"?{query}" if query and not _HUB_KEY.search(query) else ""


@lru_cache(maxsize=1)
def http_client() -> httpx2.Client:
    """Return the one client of this process; it keeps connections to upstream open."""
    host = urlsplit(settings.ANTHROPIC_UPSTREAM).hostname or ""
    return httpx2.Client(
        timeout=httpx2.Timeout(settings.ANTHROPIC_TIMEOUT_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60),
        follow_redirects=False,
        trust_env=host not in ("127.0.0.1", "localhost", "::1"),
    )
