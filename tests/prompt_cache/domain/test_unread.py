"""Which written tokens were never read."""

import statistics
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.prompt_cache.domain.unread import (
    ChainStep,
    UnreadWrite,
    median_of,
    unread_write,
    wait_class,
    waits,
)

TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("read", "write_5m", "write_1h", "next_read", "unread"),
    [
        (100, 50, 0, 150, (0, 0)),
        (100, 50, 0, 100, (50, 0)),
        (100, 50, 0, 0, (50, 0)),
        (100, 50, 0, 120, (30, 0)),
        (100, 50, 40, 140, (50, 0)),
        (100, 50, 40, 120, (50, 20)),
        (100, 50, 40, 170, (20, 0)),
        (100, 50, 40, 500, (0, 0)),
        (0, 0, 0, 0, (0, 0)),
    ],
)
def test_the_next_request_reads_a_prefix(
    read: int, write_5m: int, write_1h: int, next_read: int, unread: tuple[int, int]
) -> None:
    assert unread_write(ChainStep(TEN, read, write_5m, write_1h, next_read), TEN) == UnreadWrite(*unread)


@pytest.mark.parametrize(("minutes", "unread"), [(1, (0, 0)), (5, (0, 0)), (6, (5, 0)), (60, (5, 0)), (61, (5, 7))])
def test_without_a_next_request_a_write_counts_once_it_expired(minutes: int, unread: tuple[int, int]) -> None:
    now = TEN + timedelta(minutes=minutes)

    assert unread_write(ChainStep(TEN, 0, 5, 7, None), now) == UnreadWrite(*unread)


@pytest.mark.parametrize("values", [[3.0], [1.0, 9.0, 2.0], [1.0, 3.0], [0.0], [0.4] * 9 + [60.0] * 8, [7200.0, 0.02]])
def test_the_median_of_classes_is_the_median_within_their_width(values: list[float]) -> None:
    middle = median_of(Counter(map(wait_class, values)))

    assert middle is not None
    assert abs(middle - statistics.median(values)) <= max(statistics.median(values) * 0.026, 0.0011)


def test_nothing_has_no_median() -> None:
    assert median_of({}) is None


@given(st.floats(0, 10**6))
def test_a_wait_lies_in_its_class(seconds: float) -> None:
    number = wait_class(seconds)

    assert number == 0 or 0.999 * 0.001 * 1.05**number <= seconds <= 1.001 * 0.001 * 1.05 ** (number + 1)


def test_a_clock_that_ran_backwards_is_left_out() -> None:
    second = timedelta(seconds=1)

    assert list(waits([(TEN, TEN + second), (TEN, TEN - second)])) == [1.0]
