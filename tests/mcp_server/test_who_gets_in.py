"""The HTTP side: POST only, a Bearer key, its scopes and its binding, its own host."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client

from tests.live import Hub
from tests.mcp_server.conftest import connect

LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def send(hub: Hub, method: str = "POST", body: Any = LIST_TOOLS, path: str = "/mcp", **headers: str) -> tuple[int, Any]:
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {hub.key}",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    data = None if method == "GET" else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{hub.base}{path}", data=data, method=method, headers=sent)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_plain_post_is_answered_with_json(live_hub: Hub) -> None:
    status, body = send(live_hub)

    assert status == 200
    assert len(json.loads(body)["result"]["tools"]) == 8


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH"])
def test_other_methods_are_refused_at_once(live_hub: Hub, method: str) -> None:
    assert send(live_hub, method)[0] == 405


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer nonsense", "Bearer mh_aaaaaaaa_" + "b" * 43, "Basic eDp5"])
def test_nobody_gets_in_without_a_valid_key(live_hub: Hub, header: str) -> None:
    status, body = send(live_hub, Authorization=header)

    assert status == 401
    assert json.loads(body)["error"]["message"]


def test_other_sites_are_refused(live_hub: Hub) -> None:
    assert send(live_hub, Origin="https://evil.example")[0] == 403
    assert send(live_hub, Origin="null")[0] == 403
    assert send(live_hub, Origin=live_hub.base)[0] == 200
    assert send(live_hub, Host="evil.example")[0] == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"42", b"\xff", b'{"jsonrpc": "2.0"}', b"[" * 5000])
def test_what_is_no_message_is_refused(live_hub: Hub, body: bytes) -> None:
    status, _ = send(live_hub, body=body)

    assert 400 <= status < 500


def test_a_body_above_the_limit_is_refused(live_hub: Hub) -> None:
    assert send(live_hub, body=b'{"x": "' + b"y" * 11_000_000 + b'"}')[0] == 413


def test_an_unknown_tool_or_method_is_an_error(live_hub: Hub) -> None:
    _, body = send(live_hub, body={**LIST_TOOLS, "method": "tools/none"})
    assert "error" in json.loads(body)
    _, body = send(live_hub, body={**LIST_TOOLS, "method": "tools/call", "params": {"name": "none", "arguments": {}}})
    answer = json.loads(body)
    assert "error" in answer or answer["result"]["isError"]


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("memory_search", {"query": "x"}, "memories:read"),
    ("memory_list", {}, "memories:read"),
    ("memory_save", {"content": "x"}, "memories:write"),
    ("memory_update", {"id": "mem_x", "content": "y"}, "memories:write"),
    ("memory_forget", {"id": "mem_x"}, "memories:write"),
    ("session_log", {"session": "s", "content": "x"}, "cache:write"),
    ("tool_cache_get", {"session": "s", "tool": "t", "params": {}}, "cache:read"),
    ("tool_cache_put", {"session": "s", "tool": "t", "params": {}, "value": 1}, "cache:write"),
]


def test_each_tool_needs_its_scope(live_hub: Hub) -> None:
    reader = live_hub.make_key("memories:read", "cache:read")
    other = live_hub.make_key("usage:write")

    def texts(key: str) -> dict[str, str]:
        async def use(client: Client) -> Any:
            found = {}
            for tool, arguments, _ in CALLS:
                answer = await client.call_tool(tool, arguments)
                found[tool] = answer.content[0].text if answer.is_error else ""  # type: ignore[union-attr]
            return found

        return dict(connect(live_hub, use, key=key))

    for tool, answer in texts(other).items():
        assert "This needs the scope" in answer, tool
    reading = texts(reader)
    for tool, _, scope in CALLS:
        assert (f"scope {scope}" in reading[tool]) == scope.endswith(":write"), tool


def test_a_bound_key_stays_in_its_scope(live_hub: Hub, call: Callable[..., Any], user: str) -> None:
    done = live_hub.manage("create_api_key", "--name", "bound", "--user", user)
    key = done.stdout.strip().splitlines()[-1]
    call("memory_save", content="somebody else's", user="somebody else")

    saved = call("memory_save", key=key, content="mine")
    listed = call("memory_list", key=key)

    assert [memory["id"] for memory in listed["memories"]] == [saved["id"]]
    assert listed["memories"][0]["scope"]["user"] == user
    assert "bound" in call("memory_save", key=key, content="x", user="somebody else")
    assert "lies outside" in call("memory_list", key=key, user="somebody else")


def test_another_workspace_sees_nothing(live_hub: Hub, call: Callable[..., Any], user: str) -> None:
    live_hub.manage("create_workspace", "mcp-elsewhere")
    done = live_hub.manage("create_api_key", "--workspace", "mcp-elsewhere", "--name", "x")
    key = done.stdout.strip().splitlines()[-1]
    saved = call("memory_save", content="ours", user=user)

    assert call("memory_list", key=key)["memories"] == []
    assert "Unknown memory" in call("memory_forget", key=key, id=saved["id"])
