"""Comparing two texts for people: exact, bounded, and quick for texts of any length."""

import pytest

from memoryhub.web.memory_versions import compare


def joined(before: str, after: str, keep: str) -> str:
    return "".join(part.text for part in compare(before, after) if part.kind in ("same", keep))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "new"),
        ("old", ""),
        ("same", "same"),
        ("Split above 400 lines.", "Split above 300 lines."),
        ("cargo", "cart"),
        ("用户偏好深色主题。", "用户偏好浅色主题。"),
        ("a\nb\nc", "a\nc"),
        ("aaa", "aaaa"),
        ("x", "y"),
    ],
)
def test_the_parts_give_back_both_texts(before: str, after: str) -> None:
    assert joined(before, after, "removed") == before
    assert joined(before, after, "added") == after


def test_words_are_not_torn_apart() -> None:
    changed = [(part.kind, part.text) for part in compare("the cargo came", "the cart came") if part.kind != "same"]

    assert changed == [("removed", "cargo"), ("added", "cart")]


def test_long_unchanged_runs_are_cut_to_what_stands_beside_the_change() -> None:
    text = "word " * 5_000

    parts = compare(f"{text}old {text}", f"{text}new {text}")

    assert sum(len(part.text) for part in parts) < 600
    assert [part.text.strip() for part in parts if part.kind != "same"] == ["old", "new"]


def test_two_long_different_texts_are_told_as_wholes_not_word_by_word() -> None:
    before = " ".join(f"a{number % 97} the" for number in range(16_000))
    after = " ".join(f"b{number % 89} the" for number in range(16_000))

    parts = compare(before, after)

    assert [part.kind for part in parts] == ["removed", "added", "same"]
    assert sum(len(part.text) for part in parts) < 10_000
