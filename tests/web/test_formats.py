"""Figures and times read the same on every page."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import translation

from memoryhub.web import formats

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Decimal("1395.87"), "$1,395.87"),
        (Decimal("-8906.544"), "−$8,906.54"),
        (Decimal("0"), "$0.00"),
        (Decimal("0.0944"), "$0.0944"),
        (Decimal("0.000012"), "$0.000012"),
        (Decimal("-0.0000001"), "$0.000000"),
        ("4.00", "$4.00"),
        (None, "—"),
        ("not money", "—"),
    ],
)
def test_dollars_keep_the_digits_that_say_something(amount: Decimal | str | None, text: str) -> None:
    assert formats.usd(amount) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (950, "950"), (12_345, "12.3 k"), (4_560_000, "4.56 M"), (128_000_000, "128 M"), (-1500, "−1.50 k")],
)
def test_tokens_are_short(value: int, text: str) -> None:
    assert formats.tokens(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.35, "350 ms"), (3, "3 s"), (200, "3 min 20 s"), (3600, "1 h"), (18_720, "5 h 12 min"), (259_200, "3 days")],
)
def test_durations_use_two_units_at_most(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (timedelta(seconds=1), "just now"),
        (timedelta(seconds=42), "42 seconds ago"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (-timedelta(days=3), "in 3 days"),
        (timedelta(days=40), "11 Oct 2026"),
    ],
)
def test_moments_are_told_by_their_distance(before: timedelta, text: str) -> None:
    assert formats.ago(NOON - before, NOON) == text


def test_a_count_beyond_the_cap_is_not_pretended_to_be_known() -> None:
    assert formats.capped_count(10_000) == "10,000"
    assert formats.capped_count(10_001) == "10,000+"


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (112, 100, ("▲ 12.0 %", "more")),
        (98, 100, ("▼ 2.0 %", "less")),
        (100, 100, ("unchanged", "same")),
        (5, 0, ("", "")),
        (300, 100, ("▲ 200 %", "more")),
    ],
)
def test_a_change_is_told_with_an_arrow_beside_its_colour(now: int, before: int, expected: tuple[str, str]) -> None:
    assert formats.change(now, before) == expected


def test_dates_are_written_in_the_viewers_language() -> None:
    with translation.override("en"):
        assert formats.day(date(2026, 11, 12)) == "12 Nov 2026"
    with translation.override("zh-hans"):
        assert formats.day(date(2026, 11, 12)) == "2026年11月12日"
