"""One tokeniser for what is stored and what is asked, in English and Chinese."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoryhub.long_term_memory.domain.stemming import stem
from memoryhub.long_term_memory.domain.text import MAX_TOKEN_CHARS, query_tokens, tokens


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"), ("plastered", "plaster"),
        ("motoring", "motor"), ("hopping", "hop"), ("falling", "fall"), ("filing", "file"), ("happy", "happi"),
        ("relational", "relat"), ("vietnamization", "vietnam"), ("hopefulness", "hope"), ("electrical", "electr"),
        ("adjustment", "adjust"), ("adoption", "adopt"), ("controlling", "control"), ("sky", "sky"), ("is", "is"),
        ("naïve", "naïve"), ("深色", "深色"), ("2026", "2026"),
    ],
)  # fmt: skip
def test_words_are_stemmed(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paintings of HORSES", ["paint", "of", "hors"]),
        ("深色主题", ["深", "色", "主", "题", "深色", "色主", "主题"]),
        ("使用VS Code编辑", ["使", "用", "使用", "vs", "code", "编", "辑", "编辑"]),
        ("the user's ID_42", ["the", "user", "id", "42"]),
        ("ＡＢＣ①", ["abc1"]),
        ("", []),
        ("—!?。，", []),
    ],
)
def test_texts_become_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_a_query_asks_for_its_meaningful_words_once() -> None:
    assert query_tokens("What is the name of the dog, the name?") == ["name", "dog"]


def test_a_query_of_stop_words_still_asks_for_something() -> None:
    assert query_tokens("to be or not to be") == ["to", "be", "or", "not"]


def test_a_two_character_word_is_found_inside_a_sentence() -> None:
    assert set(query_tokens("主题")) <= set(tokens("界面使用深色主题"))


@given(st.text(max_size=400))
def test_any_text_gives_storable_tokens(text: str) -> None:
    assert all(0 < len(token) <= MAX_TOKEN_CHARS and token == token.lower() for token in tokens(text))
