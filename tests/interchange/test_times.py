"""Times as other systems write them become aware UTC."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memoryhub.interchange.times import read_time, write_time

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05z",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05",
        "2026-01-02T03:04:05.000000Z",
        "2026-01-02T11:04:05+08:00",
        "2026-01-02T03:04:05+00:00Z",
        "2026-01-01T22:04:05-0500",
        " 2026-01-02T03:04:05Z ",
        1767323045,
        1767323045.0,
        1767323045000,
        "1767323045",
        "1767323045.0",
        "1.767323045e9",
        datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001
        MOMENT,
    ],
)
def test_one_moment_in_many_spellings(value: Any) -> None:
    assert read_time(value, "created_at") == MOMENT


def test_fractions_of_an_epoch_second_are_kept() -> None:
    assert read_time(1767323045.25, "created_at") == MOMENT.replace(microsecond=250_000)


def test_a_day_is_its_first_moment() -> None:
    assert read_time("2026-01-02", "created_at") == datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("value", [None, ""])
def test_nothing_is_no_time(value: Any) -> None:
    assert read_time(value, "created_at") is None


def test_written_times_end_in_z() -> None:
    assert write_time(MOMENT) == "2026-01-02T03:04:05Z"
    assert write_time(MOMENT.replace(microsecond=1)) == "2026-01-02T03:04:05.000001Z"
    assert write_time(None) is None
