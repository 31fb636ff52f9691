"""Why costs changed: the effects are told apart and add up exactly."""

from hypothesis import given
from hypothesis import strategies as st

from memoryhub.prompt_cache.domain.cost_change import CostChange, Period, explain_change

BEFORE = Period(requests=10, nocache_pico=1_000, cost_pico=400)
AMOUNTS = st.integers(0, 9 * 10**18)


def test_twice_as_many_requests_of_the_same_kind() -> None:
    assert explain_change(Period(20, 2_000, 800), BEFORE) == CostChange(400, 0, 0)


def test_the_same_requests_twice_as_large() -> None:
    assert explain_change(Period(10, 2_000, 800), BEFORE) == CostChange(0, 400, 0)


def test_the_same_requests_with_less_read_from_the_cache() -> None:
    assert explain_change(Period(10, 1_000, 900), BEFORE) == CostChange(0, 0, 500)


def test_fewer_and_larger_requests_with_a_better_cache() -> None:
    assert explain_change(Period(5, 1_000, 100), BEFORE) == CostChange(-200, 200, -300)


def test_nothing_before_or_now_is_no_change_to_explain() -> None:
    assert explain_change(BEFORE, Period(0, 0, 0)) is None
    assert explain_change(Period(0, 0, 0), BEFORE) is None


@given(
    st.builds(Period, st.integers(1, 10**7), AMOUNTS, AMOUNTS),
    st.builds(Period, st.integers(1, 10**7), AMOUNTS, AMOUNTS),
)
def test_the_effects_add_up_exactly(now: Period, before: Period) -> None:
    change = explain_change(now, before)

    assert change is None if not before.nocache_pico else change is not None
    if change is not None:
        assert change.total_pico == now.cost_pico - before.cost_pico
