"""The gateway with the real SDK against a local upstream: the request it makes, and what it makes of answers."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from memoryhub.llm.gateway import AnthropicGateway, ProviderFailed, ProviderRefused, UnusableAnswer

RECORDED = json.loads((Path(settings.BASE_DIR) / "fixtures/anthropic/extraction.json").read_text())
SCHEMA = {"type": "object", "required": ["memories"], "properties": {"memories": {"type": "array"}}}


class Upstream:
    """Answers every request with one status and body, and keeps what it was sent."""

    def __init__(self) -> None:
        self.status, self.body = 200, RECORDED
        self.seen: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                upstream.seen.append((self.path, sent, {key.lower(): value for key, value in self.headers.items()}))
                data = json.dumps(upstream.body).encode()
                self.send_response(upstream.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.send_header("x-should-retry", "false")
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self) -> Any:
        gateway = AnthropicGateway("sk-test", f"http://127.0.0.1:{self.server.server_port}", "claude-haiku-5-5")
        return gateway.ask(system="be brief", prompt="read", schema=SCHEMA, max_tokens=100)


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_it_asks_for_the_shape_and_returns_the_data(upstream: Upstream) -> None:
    answer = upstream.ask()

    path, sent, headers = upstream.seen[0]
    assert path == "/v1/messages"
    assert "sk-test" in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
    assert sent["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert sent["system"] == "be brief"
    assert answer.data["memories"][0]["event_ids"] == ["e1"]
    assert answer.usage == {"input_tokens": 412, "output_tokens": 96}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ProviderRefused),
        (401, ProviderRefused),
        (429, ProviderFailed),
        (500, ProviderFailed),
        (529, ProviderFailed),
    ],
)
def test_an_error_of_the_provider_is_told_apart(upstream: Upstream, status: int, error: type[Exception]) -> None:
    upstream.status, upstream.body = status, {"type": "error", "error": {"type": "x", "message": "no"}}

    with pytest.raises(error, match=str(status)):
        upstream.ask()


@pytest.mark.parametrize(
    "change",
    [
        {"content": [{"type": "text", "text": "not json"}]},
        {"content": [{"type": "text", "text": "[]"}]},
        {"content": [{"type": "text", "text": '{"other": 1}'}]},
        {"stop_reason": "max_tokens"},
    ],
)
def test_an_answer_of_another_shape_is_refused(upstream: Upstream, change: dict[str, Any]) -> None:
    upstream.body = {**RECORDED, **change}

    with pytest.raises(UnusableAnswer):
        upstream.ask()


def test_a_provider_out_of_reach_is_a_failure(upstream: Upstream) -> None:
    upstream.server.shutdown()
    upstream.server.server_close()

    with pytest.raises(ProviderFailed):
        upstream.ask()
