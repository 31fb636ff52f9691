"""The pass-through, with the real SDK, a real server and a local provider that bills by the rules of caching."""

import contextlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import pytest

from tests.anthropic_api.provider import Provider
from tests.live import Hub, running_hub
from tests.prompt_cache.rules.cases import MARK, Body, next_turn, text

SECRET = "sk-ant-provider-secret"
LONG = "word " * 3_000


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    served = Provider()
    yield served
    served.close()


@pytest.fixture(scope="module")
def hub(provider: Provider) -> Iterator[Hub]:
    with running_hub(MEMORYHUB_ANTHROPIC_UPSTREAM=provider.url) as served:
        yield served


@pytest.fixture
def session(request: pytest.FixtureRequest) -> str:
    return request.node.name[:150]


@pytest.fixture
def client(hub: Hub, session: str) -> Iterator[anthropic.Anthropic]:
    with make_client(hub, session) as made:
        yield made


def make_client(hub: Hub, session: str) -> anthropic.Anthropic:
    headers = {"X-MemoryHub-Key": hub.key, "X-MemoryHub-Session": session}
    return anthropic.Anthropic(base_url=f"{hub.base}/anthropic", api_key=SECRET, default_headers=headers, max_retries=0)


def ask(words: str = "hi") -> Body:
    system = [text(LONG, cache_control=MARK)]
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 16,
        "system": system,
        "messages": [{"role": "user", "content": [text(words, cache_control=MARK)]}],
    }


def rows(hub: Hub, query: str, *values: Any) -> list[Any]:
    with contextlib.closing(sqlite3.connect(f"file:{hub.folder}/memoryhub.sqlite3?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchall()


def recorded(hub: Hub, session: str, count: int = 1, seconds: float = 10.0) -> list[dict[str, Any]]:
    """The session's records, once so many are there."""
    names = [
        "message_id",
        "input_tokens",
        "cache_write_5m_tokens",
        "cache_read_tokens",
        "output_tokens",
        "flags",
        "source",
        "agent",
    ]
    deadline = time.monotonic() + seconds
    while True:
        found = rows(
            hub, f"SELECT {', '.join(names)} FROM prompt_cache_usagerecord WHERE session = ? ORDER BY id", session
        )
        if len(found) >= count or time.monotonic() > deadline:
            return [dict(zip(names, row, strict=True)) for row in found]
        time.sleep(0.05)


def stream_text(client: anthropic.Anthropic, body: Body, **more: Any) -> str:
    with client.messages.stream(**body, **more) as stream:
        return "".join(stream.text_stream)


def test_an_answer_passes_and_is_in_the_ledger_within_two_seconds(
    hub: Hub, client: anthropic.Anthropic, provider: Provider, session: str
) -> None:
    answer = client.messages.create(**ask())

    assert answer.content[0].text == "abc"  # type: ignore[union-attr]
    [record] = recorded(hub, session, seconds=2)
    usage = provider.usages[answer.id]
    assert (record["message_id"], record["source"], json.loads(record["flags"])) == (answer.id, "proxy", [])
    assert [record["input_tokens"], record["cache_write_5m_tokens"], record["cache_read_tokens"], record["output_tokens"]] == [
        usage["input_tokens"], usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"], 3,
    ]  # fmt: skip


def test_a_stream_passes_and_its_counters_are_not_added_up(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    assert stream_text(client, ask()) == "abc"

    [record] = recorded(hub, session)
    assert (record["output_tokens"], json.loads(record["flags"])) == (3, [])


def test_pieces_arrive_as_they_are_sent(client: anthropic.Anthropic, provider: Provider) -> None:
    provider.release.clear()
    with client.messages.stream(**ask(), extra_headers={"X-Behaviour": "hold"}) as stream:
        words = iter(stream.text_stream)
        first = next(words)
        provider.release.set()

        assert (first, "".join(words)) == ("a", "bc")


def test_a_client_that_leaves_early_closes_upstream(
    hub: Hub, client: anthropic.Anthropic, provider: Provider, session: str
) -> None:
    provider.closed_early.clear()
    with client.messages.stream(**ask(), extra_headers={"X-Behaviour": "endless"}) as stream:
        next(iter(stream.text_stream))

    assert provider.closed_early.wait(10)
    [record] = recorded(hub, session)
    assert json.loads(record["flags"]) == ["cut_stream"]
    assert record["output_tokens"] == 1


def test_a_cut_stream_is_told_and_recorded_as_failed(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    with pytest.raises(anthropic.APIError, match="closed the stream"):
        stream_text(client, ask(), extra_headers={"X-Behaviour": "cut"})

    [record] = recorded(hub, session)
    assert json.loads(record["flags"]) == ["cut_stream"]
    assert record["cache_write_5m_tokens"] + record["cache_read_tokens"] > 0


def test_an_overloaded_provider_is_passed_on(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(**ask(), extra_headers={"X-Behaviour": "overloaded"})

    response = caught.value.response
    assert (response.status_code, response.headers["retry-after"], response.headers["request-id"]) == (
        529,
        "17",
        "req_up",
    )
    assert response.headers["anthropic-ratelimit-requests-remaining"] == "0"
    assert recorded(hub, session, seconds=0.5) == []


def test_a_slow_provider_holds_up_nobody_else(hub: Hub, client: anthropic.Anthropic) -> None:
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(client.messages.create, **ask(), extra_headers={"X-Behaviour": "slow"}) for _ in range(3)]
        client.messages.create(**ask())

        assert not any(one.done() for one in slow)
        assert all(one.result().content for one in slow)


def test_twenty_parallel_streams(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    with ThreadPoolExecutor(20) as pool:
        answers = list(
            pool.map(
                lambda number: stream_text(client, ask(f"question {number}"), extra_headers={"X-Behaviour": "slow"}),
                range(20),
            )
        )

    assert answers == ["abc"] * 20
    records = recorded(hub, session, 20)
    assert len({record["message_id"] for record in records}) == 20
    assert {record["output_tokens"] for record in records} == {3}


def test_a_conversation_is_diagnosed_as_it_is_recorded(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    first = ask("turn one")
    one = client.messages.create(**first, extra_body={"diagnostics": {"previous_message_id": None}})
    time.sleep(0.6)
    second = next_turn(first, "turn two")
    two = client.messages.create(**second, extra_body={"diagnostics": {"previous_message_id": one.id}})
    time.sleep(0.6)
    third = next_turn(second, "turn three")
    third["system"][0]["text"] = "Now: 10:31. " + LONG
    three = client.messages.create(**third, extra_body={"diagnostics": {"previous_message_id": two.id}})

    recorded(hub, session, 3)
    joined = "JOIN prompt_cache_usagerecord r ON r.id = d.record_id WHERE r.session = ?"
    columns = "r.message_id, d.verdict, d.cause, d.path, d.kind, d.provider_reason, d.agrees, d.before"
    query = f"SELECT {columns} FROM prompt_cache_diagnosis d {joined} ORDER BY r.id"
    found = {row[0]: row[1:] for row in rows(hub, query, session)}
    assert found[two.id][:2] == ("hit", "none")
    assert found[two.id][5] == 1  # the provider saw no change either
    assert found[three.id] == ("miss", "system_changed", "system[0].text", "timestamp", "system_changed", 1, "")
    kept = rows(
        hub, f"SELECT count(*) FROM prompt_cache_requestfingerprint d {joined} AND kept_body IS NOT NULL", session
    )
    assert kept == [(1,)]  # the last body of the conversation, and no other


def test_answers_do_not_wait_for_a_locked_ledger(hub: Hub, client: anthropic.Anthropic, session: str) -> None:
    with contextlib.closing(sqlite3.connect(hub.folder / "memoryhub.sqlite3", isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        times = []
        for _ in range(5):
            started = time.monotonic()
            client.messages.create(**ask())
            assert stream_text(client, ask()) == "abc"
            times.append(time.monotonic() - started)
            time.sleep(0.9)
        assert recorded(hub, session, seconds=0) == []
        database.execute("ROLLBACK")

    assert max(times) < 5  # a write would have waited for the lock, which was held all the time
    assert len(recorded(hub, session, 10, seconds=20)) == 10


def descendants(pid: int) -> list[int]:
    """The processes that this one started, and theirs."""
    children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(later for child in children for later in descendants(child))]


def test_a_killed_server_loses_nothing_it_knew(provider: Provider, session: str) -> None:
    with running_hub(MEMORYHUB_ANTHROPIC_UPSTREAM=provider.url) as served, make_client(served, session) as client:
        provider.release.clear()
        with client.messages.stream(**ask(), extra_headers={"X-Behaviour": "hold"}) as stream:
            next(iter(stream.text_stream))
            assert served.process is not None
            for pid in [served.process.pid, *descendants(served.process.pid)]:
                os.kill(pid, signal.SIGKILL)
        provider.release.set()
        served.process.wait()
        time.sleep(1)
        served.start()

        [record] = recorded(served, session, seconds=40)
        assert json.loads(record["flags"]) == ["cut_stream"]


# --- Keys and bytes --------------------------------------------------------------------------------------------------


def test_the_body_and_the_query_go_upstream_as_they_are(hub: Hub, provider: Provider) -> None:
    odd = b'{"model":"claude-opus-5-5",  "max_tokens":5,"messages":[{"role":"user","content":"h\\u00e9"}], "metadata":{"b":1.0,"a":2}}'

    status, _ = hub.call(
        "POST",
        "/anthropic/v1/messages?beta=true",
        odd,
        key=SECRET,
        **{"X-MemoryHub-Key": hub.key, "anthropic-beta": "x-1"},
    )

    path, raw, headers = provider.seen[-1]
    assert (status, path, raw) == (200, "/v1/messages?beta=true", odd)
    assert headers["Anthropic-Beta"] == "x-1"


def test_the_hubs_key_never_goes_upstream(hub: Hub, provider: Provider) -> None:
    body = json.dumps(ask()).encode()
    hub.call(
        "POST",
        f"/anthropic/k/{hub.key}/v1/messages?key={hub.key}",
        body,
        key=SECRET,
        **{"X-Odd": f"a {hub.key}", "Cookie": f"k={hub.key}"},
    )
    hub.call("POST", "/anthropic/v1/messages", body, key=SECRET, **{"X-Api-Key": hub.key})

    for path, raw, headers in provider.seen[-2:]:
        assert hub.key not in path + raw.decode() + json.dumps(headers)
        assert headers["Authorization"] == f"Bearer {SECRET}"
        assert not any(name.lower().startswith("x-memoryhub") for name in headers)


def test_a_hub_key_alone_is_refused_with_the_header_to_use(hub: Hub) -> None:
    status, answer = hub.call("POST", "/anthropic/v1/messages", json.dumps(ask()).encode())

    assert (status, answer["type"], answer["error"]["type"]) == (401, "error", "authentication_error")
    assert "X-MemoryHub-Key" in answer["error"]["message"]


def test_no_hub_key_and_a_wrong_one_are_refused(hub: Hub, provider: Provider) -> None:
    before = len(provider.seen)
    answers = [
        hub.call("POST", "/anthropic/v1/messages", b"{}", key=SECRET)[0],
        hub.call("POST", "/anthropic/v1/messages", b"{}", key=SECRET, **{"X-MemoryHub-Key": "mh_00000000_" + "x" * 43})[
            0
        ],
        hub.call(
            "POST", "/anthropic/v1/messages", b"{}", key=SECRET, **{"X-MemoryHub-Key": hub.make_key("memories:write")}
        )[0],
        hub.call("GET", "/anthropic/v1/messages", key=SECRET, **{"X-MemoryHub-Key": hub.key})[0],
    ]

    assert answers == [401, 401, 403, 405]
    assert len(provider.seen) == before


def test_models_and_token_counts_pass(hub: Hub, provider: Provider) -> None:
    headers = {"X-MemoryHub-Key": hub.key}

    assert hub.call("GET", "/anthropic/v1/models?limit=5", key=SECRET, **headers)[0] == 200
    assert provider.seen[-1][0] == "/v1/models?limit=5"
    assert hub.call("GET", "/anthropic/v1/models/claude-opus-5-5", key=SECRET, **headers)[0] == 200
    assert provider.seen[-1][0] == "/v1/models/claude-opus-5-5"
    assert hub.call("POST", "/anthropic/v1/messages/count_tokens", b'{"messages":[]}', key=SECRET, **headers) == (
        200,
        {"input_tokens": 7},
    )


def test_claude_codes_session_is_read_from_its_metadata(hub: Hub) -> None:
    session = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
    body = ask() | {"metadata": {"user_id": f"user_abc_account_def_session_{session}"}}
    hub.call(
        "POST",
        "/anthropic/v1/messages",
        json.dumps(body).encode(),
        key=SECRET,
        **{"X-MemoryHub-Key": hub.key, "X-MemoryHub-Agent": "main"},
    )

    [record] = recorded(hub, session)
    assert record["agent"] == "main"


def test_the_configured_key_is_used_and_an_absent_provider_is_a_502(session: str) -> None:
    with running_hub(
        MEMORYHUB_ANTHROPIC_UPSTREAM="http://127.0.0.1:9", MEMORYHUB_ANTHROPIC_API_KEY="sk-ours"
    ) as served:
        status, answer = served.call("POST", "/anthropic/v1/messages", json.dumps(ask()).encode())

        assert (status, answer["error"]["type"]) == (502, "api_error")
        assert "sk-ours" not in served.log()
        assert SECRET not in served.log()
