"""`python -m tests.bench.proxy`: what the pass-through adds to a call and to the first streamed byte, beside the same upstream.

Upstream is a process of its own: as a thread of the caller's it would wait for the caller's own work, and so would the figures.
"""

from __future__ import annotations

import http.server
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

import httpx2

from tests.bench.throwaway import show
from tests.live import running_hub

ROUNDS = 300
USAGE = {"input_tokens": 3, "output_tokens": 5, "cache_creation_input_tokens": 1000, "cache_read_input_tokens": 2000}
REQUEST = {"model": "claude-opus-5-5", "max_tokens": 5, "messages": [{"role": "user", "content": "hi " * 2000}]}
_numbers = iter(range(10**9))


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers at once, with a new message each time."""

    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *args: Any) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {
            "id": f"msg_{next(_numbers)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "usage": USAGE,
        }
        if body.get("stream"):
            events = [
                ("message_start", {"message": message}),
                ("message_delta", {"usage": {"output_tokens": 5}}),
                ("message_stop", {}),
            ]
            text = "".join(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n" for kind, data in events)
            self.answer(text.encode(), "text/event-stream")
        else:
            self.answer(json.dumps(message).encode(), "application/json")

    def answer(self, data: bytes, kind: str) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n\r\n"
        self.wfile.write(head.encode() + data)


def one_call(client: httpx2.Client, url: str, headers: dict[str, str], *, stream: bool) -> float:
    """Milliseconds to the whole answer, or to the first byte of a stream."""
    body = REQUEST | ({"stream": True} if stream else {})
    started = time.perf_counter()
    with client.stream("POST", url, json=body, headers=headers) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        if stream:
            took = time.perf_counter() - started
        for _ in pieces:
            pass
        if not stream:
            took = time.perf_counter() - started
        assert answer.status_code == 200
    return took * 1000


def serve(told: Connection) -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    server.daemon_threads = True
    told.send(server.server_port)
    server.serve_forever()


@contextmanager
def running_upstream() -> Iterator[str]:
    """The address of an upstream in a process of its own."""
    context = multiprocessing.get_context("spawn")
    heard, told = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(told,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{heard.recv()}"
    finally:
        process.kill()
        process.join()


def main() -> None:
    """Take turns between upstream and hub, and print the difference of the medians."""
    with (
        running_upstream() as upstream,
        running_hub(MEMORYHUB_ANTHROPIC_UPSTREAM=upstream) as hub,
        httpx2.Client(trust_env=False, timeout=60) as client,
    ):
        headers = {"X-MemoryHub-Key": hub.key, "Authorization": "Bearer sk-none"}
        places = {"direct": f"{upstream}/v1/messages", "proxied": f"{hub.base}/anthropic/v1/messages"}
        for stream in (False, True):
            times: dict[str, list[float]] = {name: [] for name in places}
            for number in range(ROUNDS + 20):
                for name, url in places.items():
                    took = one_call(client, url, headers, stream=stream)
                    if number >= 20:
                        times[name].append(took)
            direct, proxied = (statistics.median(times[name]) for name in ("direct", "proxied"))
            figure = "proxy_adds_to_first_byte_p50" if stream else "proxy_adds_p50"
            show(figure, proxied - direct, "ms", goal="<= 3", direct_ms=round(direct, 3), proxied_ms=round(proxied, 3))


if __name__ == "__main__":
    main()
