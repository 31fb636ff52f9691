"""Markers are placed where they pay, at most four, and nothing else is touched."""

import copy
from fractions import Fraction
from typing import Any

import pytest

from memoryhub.prompt_cache.domain.planner import plan
from memoryhub.prompt_cache.domain.validator import validate
from tests.prompt_cache.rules.cases import HOUR, MARK, Body, make_body, make_exchange, next_turn, text, tool

LONG = "word " * 2_000


def long_body(**changes: Any) -> Body:
    return (
        make_body(
            tools=[tool("read", description=LONG)],
            system=[text(LONG)],
            messages=[{"role": "user", "content": [text(LONG)]}],
        )
        | changes
    )


def without_markers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [without_markers(item) for item in value] if isinstance(value, list) else value


def placed(body: Body, **more: Any) -> list[tuple[str, str]]:
    return [(marker.path, marker.ttl) for marker in plan(body, **more).markers]


def test_tools_system_and_conversation_are_marked() -> None:
    assert placed(long_body()) == [("tools[0]", "1h"), ("system[0]", "1h"), ("messages[0].content[0]", "5m")]


def test_nothing_but_markers_changes() -> None:
    body = long_body()
    before = copy.deepcopy(body)

    result = plan(body).body

    assert body == before
    assert without_markers(result) == before
    assert list(result) == list(before)


def test_each_marker_has_its_reason_and_break_even() -> None:
    markers = plan(long_body()).markers

    assert all(marker.why for marker in markers)
    assert [marker.break_even_reads for marker in markers] == [2, 2, 1]
    assert [marker.break_even_reads for marker in plan(long_body(), read_ratio=Fraction(1, 40)).markers] == [2, 2, 1]


def test_a_prompt_below_the_minimum_is_left_alone() -> None:
    body = make_body(model="claude-opus-4-6", system=[text("short")], messages=[{"role": "user", "content": "hi"}])

    assert plan(body).markers == ()
    assert plan(body).body == body


def test_a_clock_in_the_system_prompt_stays_behind_the_marker() -> None:
    body = long_body(system=[text(LONG), text("Now: 2026-11-29T10:00:00Z")])

    assert ("system[0]", "1h") in placed(body)
    assert all(path != "system[1]" for path, _ in placed(body))


def test_the_callers_own_markers_are_kept_and_counted() -> None:
    body = long_body(
        system=[text(LONG, cache_control=MARK), text(LONG, cache_control=MARK), text(LONG, cache_control=MARK)]
    )

    result = plan(body)

    assert len(result.markers) == 1
    assert [block["cache_control"] for block in result.body["system"]] == [MARK] * 3


def test_four_markers_are_enough() -> None:
    body = long_body(system=[text(LONG, cache_control=MARK) for _ in range(4)])

    assert placed(body) == []


@pytest.mark.parametrize(("theirs", "expected"), [(MARK, "5m"), (HOUR, "1h")])
def test_the_order_of_lifetimes_is_kept(theirs: Body, expected: str) -> None:
    body = long_body(tools=[tool("read", description=LONG, cache_control=theirs)])

    assert ("system[0]", expected) in placed(body)


def test_an_hour_at_the_end_makes_everything_before_it_an_hour() -> None:
    body = long_body(messages=[{"role": "user", "content": [text(LONG, cache_control=HOUR)]}])

    assert placed(body) == [("tools[0]", "1h"), ("system[0]", "1h")]


def test_automatic_caching_is_left_to_mark_the_end() -> None:
    assert placed(long_body(cache_control=HOUR)) == [("tools[0]", "1h"), ("system[0]", "1h")]


def test_a_system_prompt_that_is_a_text_becomes_one_block() -> None:
    result = plan(long_body(system=LONG))

    assert result.body["system"] == [text(LONG, cache_control=HOUR)]
    assert ("system[0]", "1h") in [(marker.path, marker.ttl) for marker in result.markers]


def test_a_conversation_that_ends_in_a_text_is_marked_automatically() -> None:
    body = long_body(messages=[{"role": "user", "content": LONG}])

    result = plan(body)

    assert result.body["cache_control"] == MARK
    assert result.body["messages"] == body["messages"]


def test_a_long_turn_gets_a_bridge_back_to_the_last_write() -> None:
    body = long_body()
    body["messages"] = [
        {"role": "user", "content": [text(LONG)]},
        {"role": "assistant", "content": [text(f"part {n}") for n in range(25)]},
        {"role": "user", "content": [text("go on")]},
    ]
    history = [
        make_exchange(
            long_body() | {"messages": [{"role": "user", "content": [text(LONG, cache_control=MARK)]}]}, write=9000
        )
    ]

    for known in (history, []):
        result = plan(body, history=history)
        codes = [finding.code for finding in validate(result.body, history=known)]
        assert "lookback_risk" not in codes
        assert ("messages[1].content[18]", "5m") in [(marker.path, marker.ttl) for marker in result.markers]


def test_long_pauses_in_the_history_make_the_tail_an_hour() -> None:
    body = long_body()
    history = [make_exchange(body, write=10_000, at=1200 * step) for step in range(4)]

    later = next_turn(body)
    later["messages"][-1]["content"] = [text("go on")]

    assert placed(later, history=history)[-1] == ("messages[2].content[0]", "1h")
