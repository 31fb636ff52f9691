"""Replays follow the provider's billing: lookback, lifetimes, minimum, mixed TTLs, keep-alive, concurrency."""

from datetime import timedelta
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import pytest

from memoryhub.prompt_cache.domain.pricing import Tokens
from memoryhub.prompt_cache.domain.simulator import (
    PLANS,
    Cache,
    Replay,
    Shape,
    UsageOnly,
    bill,
    calibration_error,
    ping_count,
    replay,
    simulate,
    usage_shapes,
)
from memoryhub.prompt_cache.domain.ttl_choice import break_even_reads, hour_pays_above, keepalive_limit_seconds
from tests.prompt_cache.rules.cases import START, tariff

MODEL = "claude-opus-5-5"


def shape(
    sizes: list[int],
    *,
    at: float = 0,
    markers: Any = (),
    prefix: str = "p",
    model: str = MODEL,
    minimum: int = 0,
    tools: int | None = None,
    system: int | None = None,
    **more: Any,
) -> Shape:
    """A request whose blocks have these sizes; blocks of one prefix name are the same wherever the sizes agree."""
    names = list(accumulate((str(size) for size in sizes), lambda a, b: f"{a},{b}"))
    return Shape(
        started=at,
        readable=at + 1,
        prefix_hashes=tuple(f"{prefix}:{name}".encode() for name in names),
        cumulative_tokens=tuple(accumulate(sizes)),
        positions=tuple(range(len(sizes))),
        can_carry=(True,) * len(sizes),
        tools_end=tools,
        system_end=system,
        markers=tuple(markers),
        total_tokens=sum(sizes),
        output_tokens=0,
        minimum_tokens=minimum,
        lookback_positions=20,
        model=model,
        at=START + timedelta(seconds=at),
        **more,
    )


def priced(request: Shape, prompt_tokens: int) -> Any:
    return tariff(request.model, request.at, prompt_tokens)


def test_mixed_lifetimes_are_billed_in_three_parts() -> None:
    markers = [(0, "1h"), (1, "5m")]
    request = shape([8_000, 2_000, 500], markers=markers)

    cold: Cache = {}
    assert bill(request, markers, cold) == Tokens(500, 2_000, 8_000, 0, 0)

    warm_static: Cache = {}
    bill(shape([8_000, 9_999], markers=markers), [(0, "1h")], warm_static)
    later = shape([8_000, 2_000, 500], at=60, markers=markers)
    assert bill(later, markers, warm_static) == Tokens(500, 2_000, 0, 8_000, 0)
    again = shape([8_000, 2_000, 500], at=120, markers=markers)
    assert bill(again, markers, warm_static) == Tokens(500, 0, 0, 10_000, 0)


def test_five_minutes_later_only_the_hour_part_is_read() -> None:
    markers, cache = [(0, "1h"), (1, "5m")], {}
    bill(shape([8_000, 2_000], markers=markers), markers, cache)

    assert bill(shape([8_000, 2_000], at=301, markers=markers), markers, cache) == Tokens(0, 2_000, 0, 8_000, 0)


@pytest.mark.parametrize(("last", "read"), [(34, 1_600), (35, 0), (36, 0)])
def test_a_breakpoint_looks_at_twenty_positions(last: int, read: int) -> None:
    cache: Cache = {}
    bill(shape([100] * 16), [(15, "5m")], cache)

    assert bill(shape([100] * (last + 1), at=10), [(last, "5m")], cache).cache_read == read


def test_a_second_breakpoint_at_the_write_makes_it_a_hit() -> None:
    cache: Cache = {}
    bill(shape([100] * 16), [(15, "5m")], cache)

    assert bill(shape([100] * 36, at=10), [(15, "5m"), (35, "5m")], cache).cache_read == 1_600


@pytest.mark.parametrize(("gap", "read"), [(299, 1_000), (300, 1_000), (301, 0)])
def test_an_entry_lives_from_start_to_start(gap: int, read: int) -> None:
    cache: Cache = {}
    bill(shape([1_000]), [(0, "5m")], cache)

    assert bill(shape([1_000], at=gap), [(0, "5m")], cache).cache_read == read


def test_each_read_refreshes_the_lifetime() -> None:
    cache: Cache = {}
    reads = [bill(shape([1_000], at=at), [(0, "5m")], cache).cache_read for at in (0, 290, 580, 870)]

    assert reads == [0, 1_000, 1_000, 1_000]


def test_an_entry_is_readable_only_after_the_first_byte() -> None:
    cache: Cache = {}
    bill(shape([1_000]), [(0, "5m")], cache)

    assert [bill(shape([1_000], at=at), [(0, "5m")], cache).cache_write_5m for at in (0.2, 0.9, 1.0)] == [
        1_000,
        1_000,
        0,
    ]


def test_a_prefix_below_the_minimum_is_silently_not_cached() -> None:
    cache: Cache = {}

    assert bill(shape([500, 500], minimum=512), [(0, "5m")], cache) == Tokens(input=1_000)
    assert cache == {}


@pytest.mark.parametrize(
    ("ratio", "reads_5m", "reads_1h", "threshold", "minutes"),
    [(Fraction(1, 10), 1, 2, "0.395", 46), (Fraction(1, 20), 1, 2, "0.385", 96), (Fraction(1, 40), 1, 2, "0.380", 196)],
)
def test_break_even_and_limits(ratio: Fraction, reads_5m: int, reads_1h: int, threshold: str, minutes: int) -> None:
    assert (break_even_reads("5m", ratio), break_even_reads("1h", ratio)) == (reads_5m, reads_1h)
    assert f"{float(hour_pays_above(ratio)):.3f}" == threshold
    assert keepalive_limit_seconds(ratio) == minutes * 60


@pytest.mark.parametrize(("gap", "count"), [(200, 0), (240, 0), (241, 1), (480, 1), (481, 2), (2760, 11), (9_999, 11)])
def test_pings_end_where_a_rebuild_is_cheaper(gap: float, count: int) -> None:
    assert ping_count(gap, Fraction(1, 10)) == count


def session(gaps: list[int], *, first: int = 10_000, step: int = 800) -> list[Shape]:
    shapes, at = [], 0
    for turn, gap in enumerate([0, *gaps]):
        at += gap
        sizes = [first, *[step] * turn]
        shapes.append(shape(sizes, at=at, markers=[(turn, "5m")]))
    return shapes


def costs(shapes: list[Shape]) -> dict[str, int]:
    result = simulate(shapes, PLANS, priced)
    return {item.plan: item.cost_pico or 0 for item in result.replays}


def test_pauses_decide_between_five_minutes_and_an_hour() -> None:
    short, long = costs(session([60] * 20)), costs(session([1_500] * 20))

    assert short["auto-5m"] < short["1h"] < short["none"]
    assert long["1h"] < long["auto-5m"]
    assert long["keepalive"] < long["auto-5m"]
    assert short["keepalive"] == short["auto-5m"] == short["actual"]


@pytest.mark.parametrize("above", [True, False])
def test_five_minutes_and_an_hour_change_places_at_the_threshold(above: bool) -> None:
    """f of 200 requests is set to just above and just below 0.75 / (2 - r)."""
    prefix, delta, threshold = 100_000, 1_000, hour_pays_above(Fraction(1, 20))
    turns = 400
    written = prefix + turns * delta
    pauses = round(threshold / (1 - threshold) * written / prefix)
    gaps = [60] * turns
    for index in range(pauses + (1 if above else -1)):
        gaps[1 + index] = 1_000
    chain = usage_shapes(
        [
            UsageOnly(Tokens(cache_write_5m=prefix + delta * turn), START + timedelta(seconds=at), MODEL)
            for turn, at in enumerate(accumulate([0, *gaps]))
        ]
    )

    both = {item.plan: item for item in simulate(chain, ("auto-5m", "1h"), priced).replays}

    share = rebuilt_share(chain, both["auto-5m"])
    assert (share > threshold) is above
    assert ((both["1h"].cost_pico or 0) < (both["auto-5m"].cost_pico or 0)) is above


def rebuilt_share(chain: list[Shape], five_minutes: Replay) -> Fraction:
    written = sum(item.cache_write_5m for item in five_minutes.bills)
    pairs = zip(pairwise(chain), five_minutes.bills[1:], strict=True)
    rebuilt = sum(min(old.total_tokens, new.total_tokens) for (old, new), item in pairs if item.cache_read == 0)
    return Fraction(rebuilt, written)


def test_regret_is_the_distance_from_the_cheapest_plan() -> None:
    result = simulate(session([1_500] * 10), PLANS, priced)
    regrets = {item.plan: result.regret_pico(item) for item in result.replays}

    assert min(value for value in regrets.values() if value is not None) == 0
    assert (regrets["none"] or 0) > 0


def test_calibration_notices_a_bill_that_the_rules_do_not_explain() -> None:
    shapes = [
        shape([1_000], markers=[(0, "5m")], billed=Tokens(cache_write_5m=1_000)),
        shape([1_000], at=10, markers=[(0, "5m")], billed=Tokens(cache_write_5m=1_000)),
    ]

    assert calibration_error(shapes) == 0.5


def test_an_unpriced_model_has_no_cost_and_no_regret() -> None:
    result = simulate(session([10]), ("none",), lambda request, tokens: None)

    assert result.replays[0].cost_pico is None
    assert result.regret_pico(result.replays[0]) is None


def test_usage_alone_reads_the_shorter_of_two_prefixes() -> None:
    chain = usage_shapes(
        [
            UsageOnly(Tokens(cache_write_5m=10_000), START, MODEL),
            UsageOnly(Tokens(cache_read=10_000, cache_write_5m=500), START + timedelta(seconds=60), MODEL),
            UsageOnly(Tokens(cache_write_5m=11_000), START + timedelta(seconds=500), MODEL),
        ]
    )

    assert calibration_error(chain) == 0
    assert [item.cache_read for item in replay(chain, "1h", priced).bills] == [0, 10_000, 10_500]
    assert [item.cache_read for item in replay(chain, "auto-5m", priced).bills] == [0, 10_000, 0]


def test_usage_alone_never_reads_more_than_either_prompt() -> None:
    """The middle prompt shrinks below what was cached before, and one request has an uncached rest."""
    chain = usage_shapes(
        [
            UsageOnly(Tokens(input=500, cache_write_5m=10_000), START, MODEL),
            UsageOnly(Tokens(input=300, cache_read=10_000), START + timedelta(seconds=60), MODEL),
            UsageOnly(Tokens(cache_write_5m=4_000), START + timedelta(seconds=120), MODEL),
        ]
    )

    reads = [item.cache_read for item in replay(chain, "auto-5m", priced).bills]

    assert reads == [0, 10_300, 4_000]  # min(previous, current) of the whole prompts
