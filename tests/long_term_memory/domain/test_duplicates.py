"""The same, nearly the same, and what changed between two texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.long_term_memory.domain.duplicates import NEAR_DUPLICATE, term_overlap, word_diff


@pytest.mark.parametrize(
    ("left", "right", "near"),
    [
        ("The user prefers dark mode in the editor", "User prefers dark mode in editor", True),
        ("用户喜欢在晚上写代码", "用户喜欢在晚上写代码。", True),
        ("Ana lives in Berlin since 2020", "Ana lives in Munich since 2021", False),
        ("favourite color is blue", "favourite food is pasta", False),
        ("tea", "coffee", False),
    ],
)
def test_near_duplicates_share_most_of_their_words(left: str, right: str, near: bool) -> None:
    assert (term_overlap(left, right) >= NEAR_DUPLICATE) is near


def test_the_diff_goes_word_by_word() -> None:
    parts = [(part.kind, part.text) for part in word_diff("likes green tea", "likes black tea")]

    assert parts == [("same", "likes "), ("removed", "green"), ("added", "black"), ("same", " tea")]


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_diff_tells_both_texts_exactly(before: str, after: str) -> None:
    parts = word_diff(before, after)

    assert "".join(part.text for part in parts if part.kind != "removed") == after
    assert sum(len(part.text) for part in parts if part.kind != "added") == len(before)
