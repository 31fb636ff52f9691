"""An equal prefix that was not read: size, markers, distance, clock; and what the miss cost."""

import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.doctor import Diagnosis, diagnose, price_miss
from memoryhub.prompt_cache.domain.pricing import Tokens
from tests.prompt_cache.rules.cases import (
    HOUR,
    MARK,
    START,
    Body,
    diagnose_pair,
    make_body,
    make_exchange,
    next_turn,
    tariff,
    text,
)


def texts(count: int) -> list[Body]:
    return [text(f"part {number} of it") for number in range(count)]


def fan_out(count: int) -> list[Body]:
    calls = [{"type": "tool_use", "id": f"tu_{n}", "name": "read", "input": {"path": f"{n}.py"}} for n in range(count)]
    results: list[Body] = [{"type": "tool_result", "tool_use_id": f"tu_{n}", "content": "x"} for n in range(count)]
    results[-1]["cache_control"] = MARK
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def far_turn(body: Body, blocks: list[Body]) -> Body:
    later = next_turn(body)
    later["messages"][-2]["content"] = blocks
    return later


@pytest.mark.parametrize(("gap", "cause"), [(299, "none"), (300, "none"), (301, "ttl_expired")])
def test_a_five_minute_entry_expires_after_300_seconds(gap: int, cause: str) -> None:
    answer = diagnose_pair(make_body(), next_turn(make_body()), read=0 if gap > 300 else 10_000, at=gap)

    assert answer.cause == cause


@pytest.mark.parametrize(("gap", "cause"), [(301, "unknown"), (3600, "unknown"), (3601, "ttl_expired")])
def test_an_hour_entry_expires_after_an_hour(gap: int, cause: str) -> None:
    body = make_body(system=[text("s", cache_control=HOUR)])
    body["messages"][2]["content"][0]["cache_control"] = HOUR

    assert diagnose_pair(body, next_turn(body), at=gap).cause == cause


def test_a_longer_life_than_promised_is_a_hit() -> None:
    assert diagnose_pair(make_body(), next_turn(make_body()), read=10_000, at=400).cause == "none"


def test_the_short_part_of_a_mixed_prefix_expires_alone() -> None:
    body = make_body(system=[text("s", cache_control=HOUR)])

    answer = diagnose_pair(body, next_turn(body), read=4_000, at=1200)

    assert (answer.cause, answer.path, answer.missed_tokens) == ("ttl_expired", "messages[2].content[0]", 6_000)


@pytest.mark.parametrize(("blocks", "cause"), [(18, "none"), (19, "lookback_exceeded"), (25, "lookback_exceeded")])
def test_a_marker_looks_at_twenty_positions_itself_included(blocks: int, cause: str) -> None:
    body = make_body()
    after = far_turn(body, texts(blocks))

    answer = diagnose_pair(body, after, read=0 if cause != "none" else 10_000)

    assert answer.cause == cause


def test_a_second_marker_on_the_way_finds_the_write() -> None:
    body = make_body()
    after = far_turn(body, texts(25))
    after["messages"][2]["content"][0]["cache_control"] = MARK

    assert diagnose_pair(body, after).cause == "unknown"


def test_fifteen_parallel_tool_calls_are_two_positions() -> None:
    body = make_body()
    after = next_turn(body)
    after["messages"][-2:] = fan_out(15)

    assert diagnose_pair(body, after, read=10_000).cause == "none"
    assert diagnose_pair(body, after, read=0).cause == "unknown"


def test_before_september_2026_each_tool_call_was_a_position() -> None:
    body = make_body(model="claude-opus-4-8")
    after = next_turn(body)
    after["messages"][-2:] = fan_out(15)
    earlier = datetime(2026, 8, 1, tzinfo=UTC) - START

    previous = make_exchange(body, write=10_000, at=earlier.total_seconds())
    current = make_exchange(after, write=10_200, at=earlier.total_seconds() + 10)

    assert diagnose(previous, current).cause == "lookback_exceeded"


@pytest.mark.parametrize(
    ("model", "tokens", "cause"),
    [
        ("claude-opus-4-6", 4000, "below_minimum"),
        ("claude-haiku-4-5-20251001", 4000, "below_minimum"),
        ("claude-opus-4-7", 2000, "below_minimum"),
        ("claude-sonnet-4-6", 1000, "below_minimum"),
        ("claude-sonnet-5-5", 500, "below_minimum"),
        ("claude-sonnet-5-5", 600, "none"),
        ("claude-who-knows", 100, "none"),
    ],
)
def test_a_prefix_below_the_models_minimum(model: str, tokens: int, cause: str) -> None:
    body = make_body(model=model)
    previous, current = make_exchange(body, rest=tokens), make_exchange(next_turn(body), rest=tokens, at=20)

    answer = diagnose(previous, current)

    assert (answer.verdict, answer.cause) == ("first", cause)


def test_a_request_without_a_marker_reads_nothing() -> None:
    body = make_body()
    after = next_turn(body)
    after["system"][1].pop("cache_control")
    after["messages"][-1]["content"][0].pop("cache_control")

    previous, current = make_exchange(body, write=10_000), make_exchange(after, rest=10_300, at=20)
    answer = diagnose(previous, current)

    assert (answer.verdict, answer.cause, answer.path) == ("miss", "no_marker", "messages[4].content[0]")


def test_a_marked_tail_that_is_replaced_each_time_varies() -> None:
    def ask(words: str) -> Body:
        return make_body(
            messages=[{"role": "user", "content": [text("Long document."), text(words, cache_control=MARK)]}]
        )

    answer = diagnose_pair(ask("now 10:00"), ask("now 10:01"), history=[make_exchange(ask("now 09:59"), write=9000)])

    assert (answer.cause, answer.path) == ("varying_tail", "messages[0].content[1].text")


def test_a_request_that_started_before_the_first_byte_could_not_read() -> None:
    body = make_body()
    previous = make_exchange(body, write=10_000, first_byte_at=START + timedelta(seconds=4))

    early = diagnose(previous, make_exchange(copy.deepcopy(body), write=10_000, at=3.9))
    late = diagnose(previous, make_exchange(copy.deepcopy(body), write=10_000, at=4))

    assert (early.cause, late.cause) == ("concurrent_start", "unknown")


def test_requests_fired_at_once_are_concurrent_even_without_a_first_byte() -> None:
    assert diagnose_pair(make_body(), make_body(), at=0).cause == "concurrent_start"


def test_nothing_is_expected_of_a_first_request() -> None:
    answer = diagnose(None, make_exchange(make_body(), write=10_000))

    assert (answer.verdict, answer.cause, answer.missed_tokens) == ("first", "none", 0)


@pytest.mark.parametrize(("read", "verdict"), [(10_000, "hit"), (9_500, "hit"), (9_499, "miss")])
def test_a_hit_reads_95_percent_of_what_was_cached(read: int, verdict: str) -> None:
    assert diagnose_pair(make_body(), next_turn(make_body()), read=read).verdict == verdict


@pytest.mark.parametrize(
    ("expected", "read", "reported"),
    [(10_000, 7_900, True), (10_000, 8_100, False), (100_000, 95_000, False), (2_000, 0, True), (1_999, 0, False)],
)
def test_only_large_misses_are_reported(expected: int, read: int, reported: bool) -> None:
    previous = make_exchange(make_body(), write=expected)
    current = make_exchange(next_turn(make_body()), read=read, write=expected - read)

    assert diagnose(previous, current).reported is reported


def test_a_low_read_beside_a_new_question_names_what_is_left_to_name() -> None:
    before = make_body(messages=[{"role": "user", "content": "What is A?"}])
    after = make_body(messages=[{"role": "user", "content": "What is B?"}])

    assert diagnose_pair(before, after, read=10_000).cause == "none"
    assert diagnose_pair(before, after, at=600).cause == "ttl_expired"
    assert diagnose_pair(before, after).path == "messages[0].content"


# --- Money -----------------------------------------------------------------------------------------------------------


def usd(pico: int | None) -> Decimal:
    assert pico is not None
    return money.usd(pico)


def test_the_worked_example() -> None:
    body = make_body()
    after = next_turn(body)
    after["system"][0]["text"] = "now 10:31"
    previous, current = make_exchange(body, write=4600), make_exchange(after, write=4700)

    answer = diagnose(previous, current, tariff=tariff())

    assert (answer.expected_tokens, answer.read_tokens, answer.missed_tokens) == (4600, 0, 4600)
    assert usd(answer.missed_pico) == Decimal("0.02208")


PRICES = [
    # missed, input, 5m, 1h, model, at, modifiers, usd
    (10_000, 0, 10_000, 0, "claude-opus-5-5", START, {}, "0.048"),  # 10k (1.25 - 0.05) 4
    (10_000, 0, 0, 10_000, "claude-opus-5-5", START, {}, "0.078"),  # 10k (2 - 0.05) 4
    (10_000, 0, 6_000, 4_000, "claude-opus-5-5", START, {}, "0.06"),  # 1h first: 4k 1.95 4 + 6k 1.2 4
    (10_000, 10_000, 0, 0, "claude-opus-5-5", START, {}, "0.038"),  # 10k (1 - 0.05) 4
    (10_000, 7_000, 3_000, 0, "claude-opus-5-5", START, {}, "0.041"),  # 3k 1.2 4 + 7k 0.95 4
    (10_000, 0, 10_000, 0, "claude-opus-5-5", START, {"speed": "fast"}, "0.096"),
    (10_000, 0, 10_000, 0, "claude-opus-5-5", START, {"inference_geo": "us"}, "0.0528"),
    (10_000, 0, 10_000, 0, "claude-opus-5-5", START, {"service_tier": "batch"}, "0.024"),
    (10_000, 0, 10_000, 0, "claude-sonnet-5-5", datetime(2026, 10, 6, tzinfo=UTC), {}, "0.023"),  # r = 0.1
    (10_000, 0, 10_000, 0, "claude-sonnet-5-5", datetime(2026, 10, 7, tzinfo=UTC), {}, "0.024"),  # r = 0.05
    (10_000, 0, 10_000, 0, "claude-fable-5-2", START, {}, "0.098"),  # r = 0.025
]


@pytest.mark.parametrize(("missed", "rest", "short", "long", "model", "at", "modifiers", "expected"), PRICES)
def test_missed_tokens_are_priced_as_they_were_billed(
    missed: int, rest: int, short: int, long: int, model: str, at: datetime, modifiers: dict[str, str], expected: str
) -> None:
    tokens = Tokens(rest, short, long, 0, 0)

    assert usd(price_miss(missed, tokens, tariff(model, at, missed, **modifiers))) == Decimal(expected)


def test_no_amount_is_a_float() -> None:
    answer = diagnose_pair(make_body(), make_body(model="claude-sonnet-5-5"))

    assert type(answer.missed_pico) is int
    assert isinstance(tariff().factor, Fraction)


def test_an_unknown_model_has_no_price_rather_than_none_at_all() -> None:
    assert diagnose(make_exchange(make_body(), write=9000), make_exchange(make_body(), write=9000)).missed_pico is None


# --- Beside the provider ---------------------------------------------------------------------------------------------


def told(reason: str | None, *, no_change: bool = False, change: Any = None) -> Diagnosis:
    after = next_turn(make_body())
    if change:
        after.update(change)
    current = make_exchange(after, write=10_000, at=20, provider_reason=reason, provider_saw_no_change=no_change)
    return diagnose(make_exchange(make_body(), write=10_000), current)


@pytest.mark.parametrize(
    ("reason", "no_change", "change", "agrees"),
    [
        ("model_changed", False, {"model": "claude-opus-5"}, True),
        ("system_changed", False, {"system": "other"}, True),
        ("system_changed", False, {"model": "claude-opus-5"}, False),
        ("messages_changed", False, None, False),
        ("unavailable", False, {"tool_choice": {"type": "any"}}, None),
        ("previous_message_not_found", False, {"system": "other"}, None),
        (None, False, {"system": "other"}, None),
        (None, True, {"system": "other"}, False),
        (None, True, None, True),
    ],
)
def test_the_provider_is_agreed_with_or_not(
    reason: str | None, no_change: bool, change: Any, agrees: bool | None
) -> None:
    answer = told(reason, no_change=no_change, change=change)

    assert (answer.provider_reason, answer.agrees) == (reason, agrees)


# --- Without bodies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "reason", "agrees"),
    [
        ({"at": 30}, "system_changed", None),  # we can't know what changed
        ({"at": 301}, "tools_changed", None),
        ({"at": 30, "read": 10_000}, "messages_changed", None),
        ({"at": 30, "model": "claude-opus-5"}, "model_changed", True),  # usage names the model
        ({"at": 30, "model": "claude-opus-5"}, "system_changed", False),
        ({"at": 30}, "unavailable", None),
    ],
)
def test_what_we_could_not_compare_is_no_disagreement(more: dict[str, Any], reason: str, agrees: bool | None) -> None:
    model = more.pop("model", None)
    current = make_exchange(None, write=10_000, provider_reason=reason, **more)
    current = replace(current, model=model or current.model)

    assert diagnose(make_exchange(None, write=10_000), current).agrees is agrees
    assert diagnose(None, make_exchange(make_body(), provider_reason=reason)).agrees is None


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"at": 301}, "ttl_expired"),
        ({"at": 30}, "unknown"),
        ({"at": 30, "model": "claude-opus-5"}, "model_changed"),
        ({"at": 0.1}, "concurrent_start"),
        ({"at": 30, "size": 5_000}, "messages_changed"),
    ],
)
def test_usage_and_time_alone_say_what_they_can(more: dict[str, Any], cause: str) -> None:
    size = more.pop("size", 10_000)
    model = more.pop("model", None)
    current = make_exchange(None, write=size, **more)
    current = replace(current, model=model or current.model)

    answer = diagnose(make_exchange(None, write=10_000), current)

    assert (answer.cause, answer.basis) == (cause, "usage")


def test_without_a_bill_the_loss_is_predicted() -> None:
    after = next_turn(make_body())
    after["messages"][0]["content"][0]["text"] = "Look at app.py."
    previous = replace(make_exchange(make_body()), tokens=None)
    current = replace(make_exchange(after, at=10), tokens=None)

    answer = diagnose(previous, current)

    assert answer.estimated
    assert (answer.verdict, answer.cause) == ("miss", "messages_changed")
    assert 0 < answer.read_tokens < answer.expected_tokens  # tools and system are still read
