"""A long work's steps follow the time that they take."""

from hypothesis import given
from hypothesis import strategies as st

from memoryhub.common.pace import Pace


def test_slow_steps_become_smaller_until_they_take_the_time_aimed_at():
    pace = Pace(8_000, seconds=0.06)
    for _ in range(10):
        pace.follow(pace.size * 0.0001)  # 0.1 ms a row

    assert 500 <= pace.size <= 700


def test_fast_steps_become_larger():
    pace = Pace(1_000, seconds=0.06)
    for _ in range(10):
        pace.follow(pace.size * 0.00001)

    assert 5_000 <= pace.size <= 7_000


def test_one_stall_is_no_trend():
    pace = Pace(4_000, seconds=0.06)
    pace.follow(30.0)

    assert pace.size == 2_000


@given(st.lists(st.floats(0, 1e6), max_size=50))
def test_sizes_stay_within_their_bounds(times):
    pace = Pace(1_000, smallest=100, largest=10_000)
    for taken in times:
        pace.follow(taken)
        assert 100 <= pace.size <= 10_000
