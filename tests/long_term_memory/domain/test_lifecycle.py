"""States move at the moment the curve crosses, in however many looks time is cut."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memoryhub.long_term_memory.domain.decay import DecayPolicy, MemoryFacts, draw_curve
from memoryhub.long_term_memory.domain.lifecycle import Standing, judge

START = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = DecayPolicy()


def judge_at(standing: Standing, facts: MemoryFacts, day: float, policy: DecayPolicy = POLICY) -> Standing:
    return judge(standing, draw_curve(facts, policy), policy, START + timedelta(days=day))


def test_a_memory_goes_from_active_over_fading_and_archived_to_forgotten() -> None:
    facts = MemoryFacts(0.5, START)
    seen = []
    standing = Standing("active", START)

    for day in (0, 9, 10, 31, 32, 211, 212):
        standing = judge_at(standing, facts, day)
        seen.append(standing.state)

    assert seen == ["active", "active", "fading", "fading", "archived", "archived", "forgotten"]


def test_a_transition_carries_the_moment_of_the_crossing() -> None:
    facts = MemoryFacts(0.5, START)
    curve = draw_curve(facts, POLICY)

    late = judge_at(Standing("active", START), facts, 200)

    assert (late.state, late.since) == ("archived", curve.archives_at)


def test_an_archived_memory_comes_back_only_when_somebody_says_so() -> None:
    standing = judge_at(Standing("archived", START), MemoryFacts(1.0, START + timedelta(days=5)), 5)

    assert standing.state == "archived"


def test_without_a_term_nothing_is_forgotten() -> None:
    policy = DecayPolicy(forget_after_days=None)

    assert judge_at(Standing("active", START), MemoryFacts(0.5, START), 30_000, policy).state == "archived"


def test_the_trash_is_nobodys_business_here() -> None:
    standing = Standing("forgotten", START)

    assert judge_at(standing, MemoryFacts(1.0, START), 0) == standing


@given(
    importance=st.floats(0, 1),
    accesses=st.integers(0, 20),
    last=st.floats(0, 1_000),
    looks=st.lists(st.floats(0, 1_000), max_size=12),
    forget_after=st.one_of(st.none(), st.floats(0, 400)),
)
def test_any_partition_of_time_into_looks_ends_the_same(
    importance: float, accesses: int, last: float, looks: list[float], forget_after: float | None
) -> None:
    facts = MemoryFacts(importance, START, accesses)
    policy = DecayPolicy(forget_after_days=forget_after)
    often = Standing("active", START)
    for day in sorted(day for day in looks if day <= last):
        often = judge_at(often, facts, day, policy)

    often = judge_at(often, facts, last, policy)
    once = judge_at(Standing("active", START), facts, last, policy)

    assert often == once
