"""Counts in windows of time, shared by all processes."""

from datetime import timedelta
from typing import Any

import pytest

from memoryhub.common import clock
from memoryhub.workspaces import tallies
from memoryhub.workspaces.models import Tally
from tests.factories import NOON


@pytest.fixture(autouse=True)
def _database(db: Any) -> None:
    """Every test here stores."""


def add(seconds: float, number: int = 1, key: str = "k") -> tallies.Count:
    with clock.frozen(NOON + timedelta(seconds=seconds)):
        return tallies.add(key, number, window_seconds=60)


def test_a_window_begins_with_its_first_event_and_ends_by_itself() -> None:
    counts = [add(0), add(30, 4), add(59.9), add(60), add(61)]

    assert [count.total for count in counts] == [1, 5, 6, 1, 2]
    assert [round(count.seconds_left, 1) for count in counts] == [60, 30, 0.1, 60, 59]


def test_what_is_taken_back_does_not_count() -> None:
    add(0, 5)

    assert add(1, -2).total == 3


def test_keys_are_counted_apart_and_can_begin_anew() -> None:
    add(0, 5, key="a")
    add(0, 1, key="b")
    tallies.clear("a")

    assert (add(1, key="a").total, add(1, key="b").total) == (1, 2)


def test_a_clock_that_was_set_back_does_not_lock_anybody_out() -> None:
    add(3_600, 100)

    assert add(0).total == 1


def test_windows_that_are_over_are_forgotten() -> None:
    add(0, key="old")
    add(100, key="new")

    with clock.frozen(NOON + timedelta(seconds=101)):
        assert tallies.forget_old() == 1
    assert [tally.key for tally in Tally.objects.all()] == ["new"]
