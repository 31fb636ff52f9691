"""`hub.prompt_cache.track(client)` with the real SDK against a local upstream that speaks the Messages API."""

import asyncio
import contextlib
import http.server
import json
import socket
import sqlite3
import threading

import pytest

anthropic = pytest.importorskip("anthropic")

USAGE = {
    "input_tokens": 3, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 200, "output_tokens": 50,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0},
}  # fmt: skip


class Upstream(http.server.BaseHTTPRequestHandler):
    """Answers every request with a text, or with a tool call where the request has tools and no result yet."""

    protocol_version = "HTTP/1.1"
    count = 0
    lock = threading.Lock()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Upstream.lock:
            Upstream.count += 1
            number = Upstream.count
        message = {
            "id": f"msg_{self.server.server_port}_{number}", "type": "message", "role": "assistant",
            "model": body["model"], "content": self.content_for(body), "stop_reason": "end_turn",
            "stop_sequence": None, "usage": USAGE,
        }  # fmt: skip
        if any(block["type"] == "tool_use" for block in message["content"]):
            message["stop_reason"] = "tool_use"
        if body.get("stream"):
            self.stream(message)
            return
        data = json.dumps(message).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("request-id", f"req_{number}")
        self.end_headers()
        self.wfile.write(data)

    def content_for(self, body):
        last = body["messages"][-1]["content"]
        answered = isinstance(last, list) and any(block.get("type") == "tool_result" for block in last)
        if body.get("tools") and not answered:
            return [{"type": "tool_use", "id": "toolu_1", "name": "look_up_price", "input": {"item": "tea"}}]
        return [{"type": "text", "text": f"said {json.dumps(last)[:60]}"}]

    def stream(self, message):
        start = {**message, "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
        events = [
            {"type": "message_start", "message": start},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 50}},
            {"type": "message_stop"},
        ]  # fmt: skip
        data = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.headers.get("X-Behaviour") == "cut":
            data = data[: data.index(b"event: content_block_stop")]
            self.close_connection = True
        self.wfile.write(data)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def upstream():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


ASK = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]}


def recorded(hub_process, hub):
    """The session's totals in the ledger, once the sender is idle."""
    assert hub.prompt_cache.flush(20)
    _, report = hub_process.call("GET", "/api/v1/prompt-cache/report?from=2026-01-01&to=2099-01-01&group_by=session")
    (row,) = [row for row in report["rows"] if row["session"] == hub.session] or [{}]
    return row


def test_each_call_is_recorded_once(upstream, hub_process, hub):
    client = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url=upstream))
    hub.prompt_cache.track(client)  # a second time changes nothing

    answer = client.messages.create(**ASK)
    with client.messages.stream(**ASK) as stream:
        text = "".join(stream.text_stream)
    events = list(client.messages.create(**ASK, stream=True))

    assert answer.content[0].text.startswith("said")
    assert text == "hello"
    assert events[-1].type == "message_stop"
    row = recorded(hub_process, hub)
    assert (row["requests"], row["output_tokens"], row["cache_read_tokens"]) == (3, 150, 600)
    assert row["cache_write_5m_tokens"] == 300


def test_the_async_client_too(upstream, hub_process, hub):
    async def talk():
        async with hub.prompt_cache.track(anthropic.AsyncAnthropic(api_key="x", base_url=upstream)) as client:
            await client.messages.create(**ASK)
            async with client.messages.stream(**ASK) as stream:
                await stream.get_final_message()
            async for _ in await client.messages.create(**ASK, stream=True):
                pass

    asyncio.run(talk())

    assert recorded(hub_process, hub)["requests"] == 3


def flags(hub_process, hub):
    """What the ledger remarks on the session's records."""
    assert hub.prompt_cache.flush(20)
    query = "SELECT flags FROM prompt_cache_usagerecord WHERE session = ? ORDER BY id"
    with contextlib.closing(sqlite3.connect(hub_process.folder / "memoryhub.sqlite3")) as database:
        return [json.loads(row[0]) for row in database.execute(query, [hub.session])]


def test_a_stream_that_is_left_early_is_recorded_with_what_is_known(upstream, hub_process, hub):
    client = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url=upstream))

    with client.messages.create(**ASK, stream=True) as stream:
        next(iter(stream))

    row = recorded(hub_process, hub)
    assert (row["requests"], row["cache_read_tokens"], row["output_tokens"]) == (1, 200, 1)
    assert flags(hub_process, hub) == [["cut_stream"]]


def test_a_stream_that_the_provider_cuts_is_the_callers_error_and_recorded_as_cut(upstream, hub_process, hub):
    client = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url=upstream, max_retries=0))
    headers = {"X-Behaviour": "cut"}
    torn = r"closed connection|incomplete|terminated"

    with pytest.raises(Exception, match=torn):
        list(client.messages.create(**ASK, stream=True, extra_headers=headers))
    with pytest.raises(Exception, match=torn), client.messages.stream(**ASK, extra_headers=headers) as stream:
        stream.until_done()
    client.messages.create(**ASK)

    assert recorded(hub_process, hub)["requests"] == 3
    assert flags(hub_process, hub) == [["cut_stream"], ["cut_stream"], []]


def test_the_providers_errors_are_the_callers(hub):
    client = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:9", max_retries=0))

    with pytest.raises(anthropic.APIConnectionError):
        client.messages.create(**ASK)


def test_a_call_does_not_wait_for_its_recording(upstream, tmp_path):
    """The hub takes the connection and never answers: calls come back all the same, and what they used is kept."""
    from memoryhub.client import MemoryHub

    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        hub = MemoryHub(f"http://{host}:{port}", "mh_x", session="s", spool_dir=tmp_path, timeout_seconds=60)
        tracked = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url=upstream))

        answers = [tracked.messages.create(**ASK) for _ in range(5)]
        connection, _ = silent.accept()  # the recording is on its way, and waits

        assert len({answer.id for answer in answers}) == 5
        connection.close()
    hub.close()
    kept = "".join(path.read_text() for path in tmp_path.iterdir() if path.is_file())
    assert all(answer.id in kept for answer in answers)


def test_a_small_agent(upstream, hub_process, make_client):
    """An agent's loop: its calls are recorded, its tool runs once, its session can be rebuilt and sent again."""
    runs = []

    def run_agent(session):
        hub = make_client(session=session)
        client = hub.prompt_cache.track(anthropic.Anthropic(api_key="x", base_url=upstream), agent="shopper")

        @hub.tools.cached(name="look_up_price", ttl=600, version="1", scope="workspace")
        def look_up_price(item):
            runs.append(item)
            return {"item": item, "price": 4}

        tools = [{"name": "look_up_price", "description": "A price.", "input_schema": {"type": "object"}}]
        hub.context.message("user", "What does tea cost?")
        while True:
            window = hub.context.window()
            answer = client.messages.create(
                model="claude-opus-5-5", max_tokens=100, tools=tools, messages=window["messages"]
            )
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                hub.context.message("assistant", [block.model_dump() for block in answer.content])
                return hub
            for call in calls:
                hub.context.append({"kind": "tool_use", "content": call.model_dump()})
            for call in calls:
                result = {"type": "tool_result", "tool_use_id": call.id, "content": str(look_up_price(**call.input))}
                hub.context.append({"kind": "tool_result", "content": result})

    first = run_agent("shopping-1")
    second = run_agent("shopping-2")

    assert runs == ["tea"]
    roles = [message["role"] for message in second.context.window()["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert second.context.window()["unpaired"] == {"tool_uses": [], "tool_results": []}
    assert recorded(hub_process, first)["requests"] == 2
