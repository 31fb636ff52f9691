"""The HTTP side of MCP: one address, POST only, a Bearer key, JSON answers, nothing kept between requests."""

from typing import Any
from urllib.parse import urlsplit

import anyio
from asgiref.sync import async_to_sync
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import split_domain_port, validate_host
from django.views.decorators.csrf import csrf_exempt

from memoryhub.mcp_server.tools import caller
from memoryhub.workspaces import key_cache

_HEADERS_LEFT_OUT = {"content-length", "transfer-encoding", "connection"}


@csrf_exempt
def mcp(request: HttpRequest) -> HttpResponse:
    """Answer one JSON-RPC message."""
    if request.method != "POST":
        response = _refusal("This server keeps no stream open: send a POST.", 405)
        response["Allow"] = "POST"
        return response
    if not _same_origin(request):
        return _refusal("Requests from other sites are refused.", 403)
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    principal = key_cache.authenticate(token.strip()) if scheme.lower() == "bearer" else None
    if principal is None:
        response = _refusal("Send a valid key as Authorization: Bearer mh_...", 401)
        response["WWW-Authenticate"] = 'Bearer realm="memoryhub"'
        return response
    held = caller.set(principal)
    try:
        return async_to_sync(_answer)(request)
    finally:
        caller.reset(held)


def _refusal(message: str, status: int) -> JsonResponse:
    error = {"code": -32600, "message": message}
    return JsonResponse({"jsonrpc": "2.0", "id": None, "error": error}, status=status)


def _same_origin(request: HttpRequest) -> bool:
    """A browser names the site that a request comes from; only this host's own may call."""
    origin = request.headers.get("Origin")
    if origin is None:
        return True
    host, _ = split_domain_port(urlsplit(origin).netloc.lower())
    own, _ = split_domain_port(request.get_host().lower())
    return bool(host) and (host == own or validate_host(host, [name for name in settings.ALLOWED_HOSTS if name != "*"]))


async def _answer(request: HttpRequest) -> HttpResponse:
    """Hand the request to the SDK as ASGI and collect what it sends."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from memoryhub.mcp_server.server import get_server

    manager = StreamableHTTPSessionManager(
        get_server()._lowlevel_server,
        json_response=True,
        stateless=True,
        max_request_body_size=settings.API_BODY_LIMIT_BYTES,
    )
    exchange = _Exchange(request)
    async with manager.run():
        await manager.handle_request(exchange.scope(), exchange.receive, exchange.send)
    return exchange.response()


class _Exchange:
    """One request and its answer in ASGI's words."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._body_sent = False
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []

    def scope(self) -> dict[str, Any]:
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in self._request.headers.items()
        ]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": self._request.scheme,
            "path": self._request.path,
            "raw_path": self._request.path.encode(),
            "query_string": self._request.META.get("QUERY_STRING", "").encode("latin-1", "replace"),
            "root_path": "",
            "headers": headers,
            "client": None,
            "server": None,
        }

    async def receive(self) -> dict[str, Any]:
        if not self._body_sent:
            self._body_sent = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        # Nobody hangs up before the answer: wait until the SDK stops listening.
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))

    def response(self) -> HttpResponse:
        response = HttpResponse(b"".join(self._parts), status=self._status)
        for name, value in self._headers:
            if name.decode("latin-1").lower() not in _HEADERS_LEFT_OUT:
                response[name.decode("latin-1")] = value.decode("latin-1")
        return response
