"""Strength over time: the formula by table, the moments of crossing, and what keeps a curve flat."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.long_term_memory.domain.decay import DecayPolicy, MemoryFacts, PolicyBook, draw_curve

START = datetime(2026, 1, 1, tzinfo=UTC)


def days(number: float) -> timedelta:
    return timedelta(days=number)


@pytest.mark.parametrize(
    ("importance", "accesses", "days_idle", "strength"),
    [
        (0.8, 0, 0, 0.8),
        (0.8, 0, 1, 0.76),
        (0.8, 1, 1, 0.76),  # one access is like none: the formula divides by at least 1
        (0.8, 2, 2, 0.76),
        (0.8, 10, 10, 0.76),
        (1.0, 0, 10, 0.95**10),
        (0.5, 0, 1_000, 0.05),  # the floor
        (0.02, 0, 1_000, 0.02),  # which never lifts a memory above its importance
        (0.0, 0, 5, 0.0),
    ],
)
def test_strength_follows_the_seed_curve(importance: float, accesses: int, days_idle: float, strength: float) -> None:
    curve = draw_curve(MemoryFacts(importance, START, accesses), DecayPolicy())

    assert curve.strength_at(START + days(days_idle)) == pytest.approx(strength)


def test_half_life_halves_whatever_the_accesses() -> None:
    policy = DecayPolicy(curve="half_life", half_life_days=10, floor=0)

    often, never = (draw_curve(MemoryFacts(0.8, START, count), policy) for count in (50, 0))

    assert often.strength_at(START + days(20)) == never.strength_at(START + days(20)) == pytest.approx(0.2)


def test_crossings_are_the_days_on_which_the_thresholds_are_reached() -> None:
    curve = draw_curve(MemoryFacts(0.5, START), DecayPolicy())

    assert curve.fades_at == START + days(math.log(0.5 / 0.3) / -math.log(0.95))
    assert curve.archives_at == START + days(math.log(0.5 / 0.1) / -math.log(0.95))


def test_an_unimportant_memory_is_below_the_threshold_from_the_start() -> None:
    assert draw_curve(MemoryFacts(0.2, START), DecayPolicy()).fades_at == START


def test_even_an_unimportant_memory_is_recalled_for_a_day() -> None:
    assert draw_curve(MemoryFacts(0.0, START), DecayPolicy()).archives_at == START + days(1)


@pytest.mark.parametrize(
    "facts",
    [
        MemoryFacts(0.9, START, pinned=True),
        MemoryFacts(0.9, START, tags=frozenset({"protected"})),
    ],
    ids=["pinned", "protected"],
)
def test_pinned_and_protected_memories_never_fade(facts: MemoryFacts) -> None:
    curve = draw_curve(facts, DecayPolicy())

    assert (curve.fades_at, curve.archives_at) == (None, None)
    assert curve.strength_at(START + days(10_000)) == 0.9


def test_a_floor_at_the_archive_threshold_keeps_everything_out_of_the_archive() -> None:
    curve = draw_curve(MemoryFacts(0.9, START), DecayPolicy(floor=0.1))

    assert curve.archives_at is None
    assert curve.fades_at is not None


def test_an_import_is_not_archived_before_thirty_days_are_over() -> None:
    imported_at = START + days(300)

    curve = draw_curve(MemoryFacts(0.5, START, imported_at=imported_at), DecayPolicy())

    assert curve.archives_at == imported_at + days(30)
    assert curve.fades_at is not None
    assert curve.fades_at < imported_at


def test_a_tag_rule_wins_over_a_kind_rule_and_both_over_the_base() -> None:
    book = PolicyBook(DecayPolicy(factor=0.9), by_kind={"episodic": {"factor": 0.5}}, by_tag={"slow": {"factor": 0.99}})

    assert book.policy_for("semantic", frozenset()).factor == 0.9
    assert book.policy_for("episodic", frozenset({"x"})).factor == 0.5
    assert book.policy_for("episodic", frozenset({"slow"})).factor == 0.99


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("factor", 1.0),
        ("factor", 0.0),
        ("half_life_days", 0),
        ("floor", -0.1),
        ("fade_threshold", 1.1),
        ("archive_threshold", 0.5),
        ("forget_after_days", -1),
        ("access_window_seconds", -1),
        ("curve", "linear"),
    ],
)
def test_a_policy_that_makes_no_sense_names_its_field(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=field):
        DecayPolicy(**{field: value}).validated()  # type: ignore[arg-type]


@given(
    importance=st.floats(0, 1),
    accesses=st.integers(0, 10_000),
    factor=st.floats(0.01, 0.999),
    floor=st.floats(0, 0.5),
    moments=st.lists(st.floats(0, 5_000), min_size=2, max_size=8),
)
def test_strength_falls_and_the_crossing_is_where_it_crosses(
    importance: float, accesses: int, factor: float, floor: float, moments: list[float]
) -> None:
    policy = DecayPolicy(factor=factor, floor=floor)
    curve = draw_curve(MemoryFacts(importance, START, accesses), policy)

    strengths = [curve.strength_at(START + days(at)) for at in sorted(moments)]
    assert strengths == sorted(strengths, reverse=True)
    assert all(min(floor, importance) <= strength <= max(importance, 0) for strength in strengths)
    if curve.fades_at is not None and curve.fades_at > START:
        assert curve.strength_at(curve.fades_at) == pytest.approx(policy.fade_threshold, abs=1e-6)
