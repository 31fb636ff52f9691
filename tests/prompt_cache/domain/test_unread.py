"""Which written tokens were never read."""

from datetime import UTC, datetime, timedelta

import pytest

from memoryhub.prompt_cache.domain.unread import ChainStep, UnreadWrite, median, unread_write, waits

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


@pytest.mark.parametrize(("values", "middle"), [([], None), ([3.0], 3.0), ([1.0, 9.0, 2.0], 2.0), ([1.0, 3.0], 2.0)])
def test_the_median(values: list[float], middle: float | None) -> None:
    assert median(values) == middle


def test_a_clock_that_ran_backwards_is_left_out() -> None:
    second = timedelta(seconds=1)

    assert list(waits([(TEN, TEN + second), (TEN, TEN - second)])) == [1.0]
