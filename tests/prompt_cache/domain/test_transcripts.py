"""Lines of Claude Code transcripts, as they are and as they break."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from memoryhub.prompt_cache.domain.sightings import Sighting
from memoryhub.prompt_cache.domain.transcripts import (
    FileMemory,
    LineError,
    TranscriptSource,
    UsageReader,
    parse_line,
)

LINE: dict[str, Any] = {
    "type": "assistant",
    "uuid": "a1",
    "parentUuid": "u1",
    "sessionId": "s1",
    "timestamp": "2026-11-10T10:00:02.000Z",
    "version": "2.1.300",
    "cwd": "/w/p",
    "gitBranch": "main",
    "isSidechain": False,
    "requestId": "req_1",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5-5",
        "content": [{"type": "text", "text": "x"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 5000,
            "cache_creation_input_tokens": 10000,
            "cache_read_input_tokens": 20000,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 10000},
            "service_tier": "standard",
            "speed": "standard",
            "inference_geo": "not_available",
        },
        "diagnostics": {"cache_miss_reason": {"type": "messages_changed", "cache_missed_input_tokens": 6455}},
    },
}


def line(message: dict[str, Any] | None = None, without: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    entry = {**LINE, **changes, "message": {**LINE["message"], **(message or {})}}
    for name in without:
        entry.pop(name, None)
        entry["message"].pop(name, None)
    return entry


def reader(stem: str = "s1", agent: str = "") -> UsageReader:
    return UsageReader(TranscriptSource(path=f"/t/{stem}.jsonl", stem=stem, agent=agent))


def read_one(entry: dict[str, Any], **options: Any) -> Sighting:
    (seen,) = read_all(reader(**options), entry)
    return seen


def read_all(file: UsageReader, *entries: Any) -> list[Sighting]:
    return [seen for entry in entries for seen in file.read(entry)] + file.finish()


def test_an_assistant_line_is_read_whole() -> None:
    seen = read_one(LINE)

    assert (seen.key, seen.model, seen.request_id, seen.occurred_at) == (
        "msg_1",
        "claude-opus-5-5",
        "req_1",
        datetime(2026, 11, 10, 10, 0, 2, tzinfo=UTC),
    )
    assert (seen.place.session, seen.place.project, seen.place.agent, seen.place.chain) == ("s1", "/w/p", "main", "s1")
    assert seen.diagnostics["cache_miss_reason"]["type"] == "messages_changed"
    assert seen.inference_geo == ""


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "user", "timestamp": "2026-11-10T10:00:00Z", "message": {"role": "user", "content": "hi"}},
        {"type": "summary", "summary": "...", "leafUuid": "a1"},
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}},
        {"type": "file-history-snapshot"},
        {"type": "brand-new-kind", "message": {"usage": {"input_tokens": "?"}}},
        {},
        line({"model": "<synthetic>"}),
        line(isApiErrorMessage=True),
        line(message={"usage": None}),
        line(without=("usage",)),
        {**LINE, "message": "text"},
        {**LINE, "message": None},
        {**LINE, "type": None},
    ],
)
def test_lines_without_billed_usage_say_nothing(entry: dict[str, Any]) -> None:
    assert read_all(reader(), entry) == []


@pytest.mark.parametrize(
    ("without", "key"), [((), "msg_1"), (("requestId",), "msg_1"), (("id",), "req_1"), (("id", "requestId"), "a1")]
)
def test_the_key_is_the_message_then_the_request_then_the_line(without: tuple[str, ...], key: str) -> None:
    assert read_one(line(without=without)).key == key


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ([], "is not a JSON object"),
        ("text", "is not a JSON object"),
        (None, "is not a JSON object"),
        (line(without=("id", "requestId", "uuid")), "neither a message id"),
        (line({"usage": {"input_tokens": "5"}}), "usage.input_tokens: is not a whole number"),
        (line({"usage": {"input_tokens": 1.5}}), "is not a whole number"),
        (line({"usage": {"input_tokens": 10**30}}), "too large"),
        (line({"usage": [1]}), "usage: is not an object"),
        (line(without=("timestamp",)), "no readable timestamp"),
        (line(timestamp="yesterday"), "no readable timestamp"),
        (line({"id": "m" * 201}), "neither a message id"),
    ],
)
def test_lines_that_cannot_be_booked_are_named(entry: Any, reason: str) -> None:
    with pytest.raises(LineError, match=reason):
        reader().read(entry)


@pytest.mark.parametrize(
    "raw", [b"{broken", b"{", b"\x00\x00\x00", b'{"a": }', b'{"a": "\xff"}', b"[1, 2", b'{"a":1}}']
)
def test_broken_json_is_an_error_of_that_line(raw: bytes) -> None:
    with pytest.raises(LineError, match="is not valid JSON"):
        parse_line(raw)


def test_half_an_emoji_and_blanks_do_not_lose_the_line() -> None:
    raw = json.dumps(LINE).replace('"usage":', '"usage" :   ').replace('"x"', '"\\ud83d"').encode()

    assert read_one(parse_line(raw)).stated.output == 5000


def test_a_surrogate_in_a_name_is_made_storable() -> None:
    entry = parse_line(json.dumps(line(cwd="/w/\ud83d\u0000p")).encode())

    assert read_one(entry).place.project == "/w/?p"


def test_a_line_without_cwd_or_session_uses_what_the_file_said_before() -> None:
    file = reader(stem="file-name")
    file.read({"type": "user", "cwd": "/w/p", "sessionId": "s9", "timestamp": "2026-11-10T10:00:00Z"})

    (seen,) = read_all(file, line(without=("cwd", "sessionId")))

    assert (seen.place.project, seen.place.session) == ("/w/p", "s9")
    assert seen.started_at == datetime(2026, 11, 10, 10, tzinfo=UTC)


def test_sub_agents_have_chains_and_names_of_their_own() -> None:
    in_own_file = read_one(line(isSidechain=True, agentId="7"), stem="agent-7", agent="Explore")
    in_main_file = read_one(line(isSidechain=True))

    assert (in_own_file.place.chain, in_own_file.place.agent) == ("s1/7", "Explore")
    assert (in_main_file.place.chain, in_main_file.place.agent, in_main_file.sidechain) == ("s1/side", "subagent", True)


def test_iterations_become_parts_and_an_advisor_keeps_its_model() -> None:
    usage = {
        "input_tokens": 1,
        "iterations": [{"type": "advisor_message", "model": "us.anthropic.claude-opus-4-6-v1", "input_tokens": 9}],
    }

    parts = read_all(reader(), line({"usage": usage}))

    assert [(p.part, p.model, p.region) for p in parts] == [(0, "claude-opus-5-5", ""), (1, "claude-opus-4-6", "us")]


@pytest.mark.parametrize("text", ["2026-11-10T18:00:02+08:00", "2026-11-10T10:00:02", "2026-11-10T10:00:02.000Z"])
def test_times_become_utc(text: str) -> None:
    assert read_one(line(timestamp=text)).occurred_at == datetime(2026, 11, 10, 10, 0, 2, tzinfo=UTC)


def test_reading_goes_on_where_it_stopped() -> None:
    first = reader()
    first.read({"type": "user", "cwd": "/w/p", "sessionId": "s1", "timestamp": "2026-11-10T10:00:00Z"})
    kept = FileMemory.from_json(json.loads(json.dumps(first.memory.to_json())))

    resumed = UsageReader(first.source, kept)

    assert read_all(resumed, LINE) == read_all(first, LINE)


def test_the_lines_of_one_response_make_one_sighting() -> None:
    placeholder = line({"usage": {**LINE["message"]["usage"], "output_tokens": 1}, "diagnostics": None})
    later = line(timestamp="2026-11-10T10:00:09.000Z")

    (seen,) = read_all(reader(), placeholder, placeholder, later)

    assert (seen.stated.output, seen.occurred_at.second, seen.ended_at and seen.ended_at.second) == (5000, 2, 9)
    assert seen.diagnostics is not None


def test_lines_that_differ_in_what_is_billed_are_left_to_the_ledger() -> None:
    fast = line({"usage": {**LINE["message"]["usage"], "speed": "fast"}})

    assert [seen.speed for seen in read_all(reader(), LINE, fast)] == ["standard", "fast"]
