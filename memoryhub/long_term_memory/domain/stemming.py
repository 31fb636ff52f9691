"""Porter's stemmer (M. F. Porter, "An algorithm for suffix stripping", 1980).

Both databases index and query the same stems, so the stemmer lives here and not in a database's full-text engine.
"""

import re
from functools import lru_cache

_VOWELS = frozenset("aeiou")
_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("abli", "able"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip
_VC = re.compile(r"v+c+")


def _shape(stem: str) -> str:
    """The stem as a string of v and c; a y is a vowel after a consonant."""
    shape: list[str] = []
    for position, letter in enumerate(stem):
        vowel = letter in _VOWELS or (letter == "y" and position > 0 and shape[-1] == "c")
        shape.append("v" if vowel else "c")
    return "".join(shape)


def _measure(stem: str) -> int:
    return len(_VC.findall(_shape(stem)))


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _ends_double_consonant(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _ends_cvc(word: str) -> bool:
    return len(word) > 2 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _step_1(word: str) -> str:
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word[: -len(suffix)]
        if word.endswith(suffix) and _has_vowel(stem):
            return _mend_after_step_1(stem)
    return word


def _mend_after_step_1(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_double_consonant(stem) and stem[-1] not in "lsz":
        return stem[:-1]
    if _measure(stem) == 1 and _ends_cvc(stem):
        return stem + "e"
    return stem


def _replace_longest(word: str, table: tuple[tuple[str, str], ...]) -> str:
    best = max((row for row in table if word.endswith(row[0])), key=lambda row: len(row[0]), default=None)
    if best is None:
        return word
    stem = word[: -len(best[0])]
    return stem + best[1] if _measure(stem) > 0 else word


def _step_4(word: str) -> str:
    if word.endswith(("sion", "tion")):
        return word[:-3] if _measure(word[:-3]) > 1 else word
    suffix = max((s for s in _STEP_4 if word.endswith(s)), key=len, default="")
    if suffix and _measure(word[: -len(suffix)]) > 1:
        return word[: -len(suffix)]
    return word


def _step_5(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        measure = _measure(stem)
        if measure > 1 or (measure == 1 and not _ends_cvc(stem)):
            word = stem
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a lower-case English word; anything else comes back as it is."""
    if len(word) <= 2 or len(word) > 40 or not (word.isascii() and word.isalpha()):
        return word
    word = _step_1(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_longest(word, _STEP_2)
    word = _replace_longest(word, _STEP_3)
    return _step_5(_step_4(word))
