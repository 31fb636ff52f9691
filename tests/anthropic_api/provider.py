"""A local provider that caches by the simulator's rules, so that hits, writes and diagnostics are what the real one would bill.

A request's header `X-Behaviour` makes it slow, cut, overloaded or silent.
"""

import http.server
import json
import threading
import time
from datetime import UTC, datetime
from typing import Any

from memoryhub.prompt_cache.domain.divergence import find_divergences
from memoryhub.prompt_cache.domain.doctor import PROVIDER_WORDS
from memoryhub.prompt_cache.domain.request_body import read_prompt
from memoryhub.prompt_cache.domain.simulator import Cache, bill, shape_of

WORDS = ("a", "b", "c")


class Provider:
    """Serves /v1/messages on a free port."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, bytes, dict[str, str]]] = []
        self.cache: Cache = {}
        self.prompts: dict[str, Any] = {}
        self.usages: dict[str, dict[str, Any]] = {}
        self.closed_early = threading.Event()
        self.release = threading.Event()
        self._lock = threading.Lock()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None: ...

            def do_POST(self) -> None:
                provider.answer(self)

            def do_GET(self) -> None:
                provider.seen.append((self.path, b"", dict(self.headers)))
                provider.send_json(self, 200, {"data": [{"id": "claude-opus-5-5", "type": "model"}], "has_more": False})

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.seen.append((handler.path, raw, dict(handler.headers)))
        behaviour = handler.headers.get("X-Behaviour", "")
        if handler.path.endswith("count_tokens"):
            self.send_json(handler, 200, {"input_tokens": 7})
        elif behaviour == "overloaded":
            error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
            self.send_json(handler, 529, error, {"retry-after": "17", "anthropic-ratelimit-requests-remaining": "0"})
        else:
            body = json.loads(raw)
            message = self.message(body)
            if behaviour == "slow":
                time.sleep(0.5)
            if body.get("stream"):
                self.stream(handler, message, behaviour)
            else:
                self.send_json(
                    handler, 200, message | {"content": [{"type": "text", "text": "abc"}], "stop_reason": "end_turn"}
                )

    def message(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            prompt = read_prompt(body)
            message_id = f"msg_{len(self.usages):04}"
            shape = shape_of(prompt, started_at=datetime.now(UTC), output_tokens=3)
            counters = bill(shape, shape.markers, self.cache)
            usage = {
                "input_tokens": counters.input,
                "output_tokens": 3,
                "cache_read_input_tokens": counters.cache_read,
                "cache_creation_input_tokens": counters.cache_write_5m + counters.cache_write_1h,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": counters.cache_write_5m,
                    "ephemeral_1h_input_tokens": counters.cache_write_1h,
                },
                "service_tier": "standard",
            }
            self.prompts[message_id], self.usages[message_id] = prompt, usage
            message = {
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
            }
            return message | {"usage": usage} | self.diagnostics(body, prompt)

    def diagnostics(self, body: dict[str, Any], prompt: Any) -> dict[str, Any]:
        if "diagnostics" not in body:
            return {}
        previous = self.prompts.get(body["diagnostics"]["previous_message_id"] or "")
        found = find_divergences(previous, prompt) if previous else []
        if not found:
            return {"diagnostics": None}
        word = min(PROVIDER_WORDS.get(found[0].cause, {"unavailable"}))
        return {"diagnostics": {"cache_miss_reason": {"type": word, "cache_missed_input_tokens": 1000}}}

    def send_json(self, handler: Any, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        handler.send_response(status)
        for name, value in {
            "content-type": "application/json",
            "request-id": "req_up",
            "content-length": str(len(data)),
            **(headers or {}),
        }.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def stream(self, handler: Any, message: dict[str, Any], behaviour: str) -> None:
        handler.send_response(200)
        for name, value in {
            "content-type": "text/event-stream; charset=utf-8",
            "request-id": "req_up",
            "transfer-encoding": "chunked",
        }.items():
            handler.send_header(name, value)
        handler.end_headers()

        def send(kind: str, data: dict[str, Any]) -> None:
            text = f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
            handler.wfile.write(f"{len(text):x}\r\n".encode() + text + b"\r\n")
            handler.wfile.flush()

        try:
            send("message_start", {"message": message | {"usage": {**message["usage"], "output_tokens": 1}}})
            send("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
            for number, word in enumerate(WORDS if behaviour != "endless" else ["x"] * 10_000):
                if behaviour == "hold" and number == 1:
                    self.release.wait(20)
                if behaviour == "cut" and number == 1:
                    handler.connection.close()
                    handler.close_connection = True
                    return
                if behaviour in ("slow", "endless"):
                    time.sleep(0.05)
                send("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word}})
            send("content_block_stop", {"index": 0})
            send(
                "message_delta",
                {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
            )
            send("message_stop", {})
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.closed_early.set()
            handler.close_connection = True
