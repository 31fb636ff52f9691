"""The same, nearly the same, and what changed between two texts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.long_term_memory.domain.duplicates import (
    NEAR_DUPLICATE,
    dedupe_key,
    rank_by_sketch,
    term_overlap,
    word_diff,
)


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


def key_of(text: str) -> str:
    return dedupe_key(text, None, None)


@pytest.mark.parametrize("length", [4, 8, 15, 40, 120, 600])
def test_sketches_find_what_is_nearly_the_same_among_many_others(length: int) -> None:
    dice = random.Random(length)
    vocabulary = [f"word{number}" for number in range(4_000)]
    texts = [dice.sample(vocabulary, length) for _ in range(300)]
    keys = [key_of(" ".join(text)) for text in texts]
    found = compared = 0
    for place, text in enumerate(texts):
        changed = [dice.choice(vocabulary) if dice.random() < 0.1 else word for word in text]
        if term_overlap(" ".join(text), " ".join(changed)) < NEAR_DUPLICATE:
            continue
        ranked = rank_by_sketch(key_of(" ".join(changed)), keys)
        found += place in ranked[:24]
        compared += 1

    assert compared > 100
    assert found == compared


def test_what_only_differs_in_order_and_stop_words_has_the_same_sketch() -> None:
    left, right = key_of("The user prefers tea in the morning"), key_of("In the morning user prefers the tea")

    assert rank_by_sketch(left, [right]) == [0]
    assert left[:24] == right[:24]
    assert left != right


def test_other_validity_or_subject_is_another_key_of_the_same_sketch() -> None:
    keys = {dedupe_key("likes tea", None, None, subject) for subject in ("", "Ann", "Bob")}

    assert len(keys) == 3
    assert len({key[:24] for key in keys}) == 1


def test_a_text_of_stop_words_alone_is_like_nothing() -> None:
    assert rank_by_sketch(key_of("the and of"), [key_of("to be or not to be"), key_of("likes tea")]) == []
    assert rank_by_sketch(key_of("likes tea"), []) == []


def test_the_diff_goes_word_by_word() -> None:
    parts = [(part.kind, part.text) for part in word_diff("likes green tea", "likes black tea")]

    assert parts == [("same", "likes "), ("removed", "green"), ("added", "black"), ("same", " tea")]


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_diff_tells_both_texts_exactly(before: str, after: str) -> None:
    parts = word_diff(before, after)

    assert "".join(part.text for part in parts if part.kind != "removed") == after
    assert sum(len(part.text) for part in parts if part.kind != "added") == len(before)
