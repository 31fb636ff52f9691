"""Ids, token estimates, the clock, and keyset values."""

from datetime import UTC, datetime, timedelta, timezone

from memoryhub.common import clock, ids, tokens
from tests.factories import NOON


def test_ids_sort_by_time_and_name_their_thing():
    with clock.frozen(NOON):
        first = ids.new_id("mem")
    with clock.frozen(NOON + timedelta(milliseconds=1)):
        second = ids.new_id("mem")

    assert first.startswith("mem_")
    assert len(first) == 4 + 26
    assert first < second


def test_ids_of_one_moment_differ():
    with clock.frozen(NOON):
        assert len({ids.new_id("mem") for _ in range(1000)}) == 1000


def test_the_clock_speaks_utc():
    with clock.frozen(datetime(2026, 11, 1, 8, tzinfo=timezone(timedelta(hours=8)))):
        assert clock.now() == datetime(2026, 11, 1, 0, tzinfo=UTC)
        assert clock.now().utcoffset() == timedelta(0)


def test_chinese_takes_about_a_token_a_character():
    assert tokens.estimate_tokens("") == 0
    assert tokens.estimate_tokens("a") == 1
    assert tokens.estimate_tokens("深色主题") == 4
    assert tokens.estimate_tokens("abcd" * 100) == 100
