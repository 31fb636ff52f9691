"""Money in and out: exact, and never a float."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.prompt_cache.domain import money


@pytest.mark.parametrize(
    ("pico", "text"),
    [
        (0, "0.000000"),
        (184_012_000_000, "0.184012"),
        (36_000_000_000, "0.036000"),
        (8 * 10**12, "8.000000"),
        (-36_000_000_000, "-0.036000"),
        (1, "0.000000000001"),
        (12_500, "0.0000000125"),
        (-1, "-0.000000000001"),
        (9 * 10**18, "9000000.000000"),
    ],
)
def test_amounts_have_at_least_six_places_and_lose_none(pico: int, text: str) -> None:
    assert money.usd_text(pico) == text


@given(st.integers(-(10**19), 10**19))
def test_every_amount_survives_its_text(pico: int) -> None:
    assert Decimal(money.usd_text(pico)) * 10**12 == pico
    assert Decimal(money.usd_text(pico)) == money.usd(pico)


@pytest.mark.parametrize(("price", "rate"), [("4", 4_000_000), ("0.125", 125_000), ("0.000001", 1), (0, 0)])
def test_prices_become_whole_rates(price: str | int, rate: int) -> None:
    assert money.rate_from_usd_per_million(price) == rate


@pytest.mark.parametrize("price", ["-1", "NaN", "Infinity", "abc", "0.0000001", "100001", ""])
def test_what_is_no_price_is_refused(price: str) -> None:
    with pytest.raises(money.AmountError):
        money.rate_from_usd_per_million(price)


@pytest.mark.parametrize(
    ("rate", "text"), [(4_000_000, "4"), (125_000, "0.125"), (0, "0"), (100_000, "0.1"), (1, "0.000001")]
)
def test_rates_are_shown_as_short_prices(rate: int, text: str) -> None:
    assert money.usd_per_million_text(rate) == text


@pytest.mark.parametrize(("pico", "expected"), [(1, 0), (3, 2), (5, 2), (7, 4), (-1, 0), (-3, -2)])
def test_halves_are_rounded_to_even(pico: int, expected: int) -> None:
    assert money.scaled(pico, 1, 2) == expected
