"""A connection goes on after an answer that did not need the request's body, however late the body comes."""

import json
import socket
import time

import pytest

from tests.live import Hub

BODY = json.dumps({"content": "x", "scope": {"user": "ana"}}).encode()


def ask(connection: socket.socket, head: str, body: bytes, *, pause: float) -> bytes:
    """Send a request's head, its body a moment later, and return the answer's first line."""
    connection.sendall(head.encode())
    time.sleep(pause)
    connection.sendall(body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = connection.recv(65_536)
        if not part:
            return answer
        answer += part
    start, _, rest = answer.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in start.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(rest) < length:
        rest += connection.recv(65_536)
    return start.split(b"\r\n")[0]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/api/v1/memories", ""),
        ("/api/v1/tool-cache/lookup", ""),
        ("/anthropic/v1/memory_stores/memstore_unknown", ""),
        ("/anthropic/v1/memory_stores/memstore_unknown/archive", "key"),
        ("/api/v1/nowhere", "key"),
        ("/mcp", ""),
        ("/login", ""),
    ],
)
def test_the_next_request_is_answered_too(live_hub: Hub, path: str, key: str) -> None:
    secret = f"Authorization: Bearer {live_hub.key}\r\n" if key else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{live_hub.port}\r\n{secret}"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", live_hub.port), timeout=30) as connection:
        for pause in (0.3, 0.0, 0.3):
            assert ask(connection, head, BODY, pause=pause).startswith(b"HTTP/1.1 4")
        assert b"200" in ask(
            connection, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{live_hub.port}\r\n\r\n", b"", pause=0
        )
