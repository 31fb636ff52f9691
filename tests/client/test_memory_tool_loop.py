"""The memory tool in the SDK's own tool runner: a model that takes notes, and one that makes mistakes."""

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic

from memoryhub.client import MemoryHub, MemoryTool

SCRIPT: list[dict[str, Any]] = [
    {"command": "view", "path": "/memories"},
    {"command": "create", "path": "/memories/notes.md", "file_text": "likes tea\n"},
    {"command": "create", "path": "/memories/../escape", "file_text": "x"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "tea", "new_str": "coffee"},
    {"command": "view", "path": "/memories/notes.md"},
]


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers each request with the script's next command, then ends the turn."""

    seen: list[dict[str, Any]] = []

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(body)
        turn = len(self.seen) - 1
        block: dict[str, Any] = {"type": "text", "text": "done"}
        if turn < len(SCRIPT):
            block = {"type": "tool_use", "id": f"toolu_{turn}", "name": "memory", "input": SCRIPT[turn]}
        answer = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [block],
            "stop_reason": "tool_use" if turn < len(SCRIPT) else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_agent_takes_notes_and_hears_of_its_mistakes(hub: MemoryHub, provider: str) -> None:
    tool = MemoryTool(hub, user="runner")
    claude = Anthropic(base_url=provider, api_key="sk-test", max_retries=0)

    runner = claude.beta.messages.tool_runner(
        model="claude-opus-5-5", max_tokens=64, tools=[tool], messages=[{"role": "user", "content": "remember"}]
    )
    final = runner.until_done()

    results = [body["messages"][-1]["content"][0] for body in Provider.seen[1:]]
    assert final.content[0].type == "text"
    assert Provider.seen[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert [bool(result.get("is_error")) for result in results] == [False, False, True, False, False]
    assert "likes coffee" in json.dumps(results[4]["content"])
    assert "not allowed" in json.dumps(results[2]["content"])
