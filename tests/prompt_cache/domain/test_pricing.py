"""What requests cost, to the last digit: the provider's table, its dates, tiers and modifiers."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from memoryhub.prompt_cache.domain.money import usd
from memoryhub.prompt_cache.domain.pricing import (
    Cost,
    Modifiers,
    PriceBook,
    PriceBookError,
    PriceEntry,
    Tokens,
    make_rates,
    read_price_book,
)

LIST = json.loads((Path(__file__).parents[3] / "fixtures/prices/anthropic.json").read_text())
BOOK = read_price_book(LIST)
M = 1_000_000


def at(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)


NOVEMBER = at("2026-11-10")


def price(model: str, tokens: Tokens, day: datetime = NOVEMBER, searches: int = 0, **modifiers: str) -> Cost:
    return BOOK.price(model, day, tokens, Modifiers(**modifiers), searches)


@pytest.mark.parametrize(
    ("tokens", "modifiers", "expected"),
    [
        (Tokens(input=3, cache_write_1h=10_000, cache_read=20_000, output=5_000), {}, "0.184012"),
        (Tokens(cache_write_5m=M, cache_write_1h=M), {}, "13.00"),
        (Tokens(cache_write_5m=600_000, cache_write_1h=400_000), {}, "6.20"),
        (Tokens(input=M), {"inference_geo": "us"}, "4.40"),
        (Tokens(input=M, cache_read=M), {"speed": "fast"}, "8.40"),
        (Tokens(input=M, cache_read=M), {"service_tier": "batch"}, "2.10"),
        (Tokens(input=M, cache_read=M), {"service_tier": "batch", "inference_geo": "us"}, "2.31"),
        (Tokens(input=M, cache_read=M), {"service_tier": "batch", "speed": "fast"}, "2.10"),
        (Tokens(input=M), {"speed": "fast", "inference_geo": "us"}, "8.80"),
        (Tokens(input=M), {"region": "eu"}, "4.40"),
        (Tokens(input=M), {"region": "us", "inference_geo": "us"}, "4.40"),
        (Tokens(input=M), {"region": "us-gov"}, "4.80"),
        (Tokens(input=M), {"inference_geo": "global"}, "4.00"),
        (Tokens(input=M), {"service_tier": "priority"}, "4.00"),
        (Tokens(output=M), {"service_tier": "batch"}, "10.00"),
        (Tokens(cache_write_5m=M), {"speed": "fast"}, "10.00"),
        (Tokens(), {}, "0"),
    ],
)
def test_opus_5_5_costs(tokens: Tokens, modifiers: dict[str, str], expected: str) -> None:
    assert usd(price("claude-opus-5-5", tokens, **modifiers).cost_pico) == Decimal(expected)


@pytest.mark.parametrize(
    ("model", "prices"),
    [
        ("claude-fable-5-2", "8 40 10 16 0.20"),
        ("claude-fable-5-1", "10 50 12.5 20 0.25"),
        ("claude-mythos-5-1", "10 50 12.5 20 0.25"),
        ("claude-fable-5", "10 50 12.5 20 1.00"),
        ("claude-mythos-5", "10 50 12.5 20 1.00"),
        ("claude-mythos-preview", "10 50 12.5 20 1.00"),
        ("claude-opus-5-5", "4 20 5 8 0.20"),
        ("claude-opus-5", "5 25 6.25 10 0.50"),
        ("claude-opus-4-8", "5 25 6.25 10 0.50"),
        ("claude-opus-4-7", "5 25 6.25 10 0.50"),
        ("claude-opus-4-6", "5 25 6.25 10 0.50"),
        ("claude-opus-4-5", "5 25 6.25 10 0.50"),
        ("claude-opus-4-1", "15 75 18.75 30 1.50"),
        ("claude-opus-4", "15 75 18.75 30 1.50"),
        ("claude-sonnet-5-5", "2 10 2.5 4 0.10"),
        ("claude-sonnet-5", "2 10 2.5 4 0.20"),
        ("claude-sonnet-4-6", "3 15 3.75 6 0.30"),
        ("claude-sonnet-4-5", "3 15 3.75 6 0.30"),
        ("claude-sonnet-4", "3 15 3.75 6 0.30"),
        ("claude-haiku-4-5", "1 5 1.25 2 0.10"),
        ("claude-3-5-haiku", "0.80 4 1 1.60 0.08"),
    ],
)
def test_every_model_has_its_list_price_for_every_kind_of_token(model: str, prices: str) -> None:
    kinds = (
        Tokens(input=M),
        Tokens(output=M),
        Tokens(cache_write_5m=M),
        Tokens(cache_write_1h=M),
        Tokens(cache_read=M),
    )

    costs = [usd(price(model, tokens).cost_pico) for tokens in kinds]

    assert costs == [Decimal(one) for one in prices.split()]


@pytest.mark.parametrize(
    ("model", "day", "expected"),
    [
        ("claude-sonnet-5-5", "2026-09-27", None),
        ("claude-sonnet-5-5", "2026-09-28", "0.20"),
        ("claude-sonnet-5-5", "2026-10-06", "0.20"),
        ("claude-sonnet-5-5", "2026-10-07", "0.10"),
        ("claude-fable-5-2", "2026-11-08", None),
        ("claude-fable-5-2", "2026-11-09", "0.20"),
        ("claude-haiku-5-5", "2026-10-06", None),
        ("claude-opus-4-8", "2026-01-01", "0.50"),
    ],
)
def test_a_read_costs_what_the_price_book_says_for_that_day(model: str, day: str, expected: str | None) -> None:
    tokens = Tokens(cache_read=M) if model != "claude-haiku-5-5" else Tokens(cache_read=1)

    cost = price(model, tokens, at(day))

    assert (None if cost.unpriced else usd(cost.cost_pico)) == (Decimal(expected) if expected else None)


def test_a_price_changes_at_midnight_utc() -> None:
    before = BOOK.price("claude-sonnet-5-5", datetime(2026, 10, 6, 23, 59, 59, tzinfo=UTC), Tokens(cache_read=M))
    after = BOOK.price("claude-sonnet-5-5", datetime(2026, 10, 7, tzinfo=UTC), Tokens(cache_read=M))

    assert (usd(before.cost_pico), usd(after.cost_pico)) == (Decimal("0.20"), Decimal("0.10"))


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (Tokens(cache_read=150_000, output=M), "2.5075"),
        (Tokens(cache_read=90_000), "0.0009"),
        (Tokens(cache_read=100_000), "0.001"),
        (Tokens(cache_read=100_001), "0.00500005"),
        (Tokens(input=1, cache_read=100_000), "0.0050005"),
        (Tokens(input=50_000, cache_write_5m=25_000, cache_write_1h=25_001), "0.065626"),
        (Tokens(input=100_000, output=M), "0.51"),
        (Tokens(output=M), "0.50"),
    ],
)
def test_haiku_5_5_is_priced_by_the_whole_prompt_of_a_request(tokens: Tokens, expected: str) -> None:
    assert usd(price("claude-haiku-5-5", tokens).cost_pico) == Decimal(expected)


@pytest.mark.parametrize(
    ("model", "day", "tokens", "expected"),
    [
        ("claude-sonnet-4-5", "2026-04-30", Tokens(input=200_000), "0.6"),
        ("claude-sonnet-4-5", "2026-04-30", Tokens(input=200_001), "1.200006"),
        ("claude-sonnet-4-5", "2026-04-30", Tokens(input=200_001, output=M), "23.700006"),
        ("claude-sonnet-4", "2026-01-15", Tokens(cache_read=M), "0.60"),
        ("claude-sonnet-4-5", "2026-05-01", Tokens(input=M, output=M), "18"),
        ("claude-sonnet-4-6", "2026-04-01", Tokens(input=M), "3"),
    ],
)
def test_long_context_of_the_old_sonnets(model: str, day: str, tokens: Tokens, expected: str) -> None:
    assert usd(price(model, tokens, at(day)).cost_pico) == Decimal(expected)


@pytest.mark.parametrize("model", ["claude-mythos-5-2", "claude-opus-9", "gpt-99", "claude-opus", "unknown", ""])
def test_a_model_without_a_price_is_unpriced_not_free(model: str) -> None:
    cost = price(model, Tokens(input=M))

    assert cost.unpriced


def test_us_geo_costs_more_only_from_4_6_on() -> None:
    old = price("claude-opus-4-5", Tokens(input=M), inference_geo="us")
    new = price("claude-opus-4-6", Tokens(input=M), inference_geo="us")

    assert (usd(old.cost_pico), usd(new.cost_pico)) == (Decimal(5), Decimal("5.5"))


def test_fast_on_a_model_that_has_no_fast_mode_is_flagged_and_not_doubled() -> None:
    cost = price("claude-sonnet-5-5", Tokens(input=M), speed="fast")

    assert (usd(cost.cost_pico), cost.flags) == (Decimal(2), ("fast_not_offered",))


def test_web_searches_are_charged_per_use_and_never_discounted() -> None:
    cost = price("claude-opus-5-5", Tokens(input=M), searches=3, service_tier="batch")

    assert usd(cost.cost_pico) == Decimal("2.03")
    assert cost.net_saving_pico == 0


def test_the_saving_is_net_of_the_write_premium_and_may_be_negative() -> None:
    saved = price("claude-opus-5-5", Tokens(3, 0, 10_000, 20_000, 5_000))
    wasted = price("claude-opus-5-5", Tokens(cache_write_1h=M))

    assert usd(saved.net_saving_pico) == Decimal("0.036")
    assert usd(wasted.net_saving_pico) == Decimal(-4)


def test_the_worked_check_of_a_sonnet_class_request() -> None:
    cost = price("claude-sonnet-4-6", Tokens(input=3, cache_write_5m=12_304, output=550))

    assert usd(cost.cost_pico) == Decimal("0.054399")


def own_entry(**changes: object) -> PriceEntry:
    values: dict[str, object] = {"model": "gpt-99", "rates": make_rates(input="1", output="2"), "source": "workspace"}
    return PriceEntry(**{**values, **changes})  # type: ignore[arg-type]


def test_a_workspaces_own_price_wins_where_it_holds() -> None:
    mine = own_entry(model="claude-opus-5-5", rates=make_rates(input="3", output="20"), valid_from=date(2026, 11, 1))
    book = BOOK.with_entries([mine])

    before = book.price("claude-opus-5-5", at("2026-10-31"), Tokens(input=M))
    after = book.price("claude-opus-5-5", at("2026-11-01"), Tokens(input=M))

    assert (usd(before.cost_pico), usd(after.cost_pico)) == (Decimal(4), Decimal(3))


def test_an_own_price_for_large_prompts_leaves_the_list_price_for_small_ones() -> None:
    mine = own_entry(model="claude-haiku-5-5", rates=make_rates(input="7", output="7"), prompt_tokens_above=200_000)
    book = BOOK.with_entries([mine])

    costs = [
        usd(book.price("claude-haiku-5-5", NOVEMBER, Tokens(input=n)).cost_pico) for n in (100_000, 200_000, 200_001)
    ]

    assert costs == [Decimal("0.01"), Decimal("0.1"), Decimal("1.400007")]


def test_prices_left_out_follow_the_usual_ratios() -> None:
    rates = make_rates(input="4", output="20")

    assert rates == make_rates(input=4, output=20, cache_write_5m="5", cache_write_1h="8", cache_read="0.4")


def test_the_version_changes_exactly_when_a_price_or_rule_does() -> None:
    again = read_price_book(json.loads(json.dumps(LIST)))
    with_price = BOOK.with_entries([own_entry()])
    other_factor = read_price_book({**LIST, "factors": {**LIST["factors"], "batch": "1/3"}})

    assert again.version == BOOK.version
    assert len({BOOK.version, with_price.version, other_factor.version}) == 3


@pytest.mark.parametrize(
    "broken", [{}, {"models": 3}, {**LIST, "models": [{"ids": ["a"], "prices": [{"input": "x"}]}]}]
)
def test_a_broken_price_file_says_so(broken: dict[str, object]) -> None:
    with pytest.raises(PriceBookError):
        read_price_book(broken)


def test_rounding_happens_once_at_the_end() -> None:
    book = PriceBook(
        entries=(own_entry(rates=make_rates(input="0.000001", output="0")),),
        rules={},
        factors=BOOK.factors,
        web_search_pico=0,
    )

    cost = book.price("gpt-99", NOVEMBER, Tokens(input=3), Modifiers(service_tier="batch"))

    assert cost.cost_pico == 2  # 1.5 pico-USD, half to even
