"""Telling two memories that can't both be right from two that say the same.

Only near duplicates are looked at, so the question is what the few words that differ are: numbers, or a "not" that only
one of them has. A wrong guess costs a person a look; nothing is decided here.
"""

import re

from memoryhub.long_term_memory.domain.duplicates import word_diff

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*|[零一二两三四五六七八九十百千万]+")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|without|cannot|can't|don't|doesn't|didn't|isn't|aren't|wasn't|won't|shouldn't|mustn't|stopped)\b"
    r"|不|没|未|勿|别|禁止|无需",
    re.I,
)


def contradicts(left: str, right: str) -> bool:
    """Tell whether two nearly equal texts differ in a number, or in whether they deny something."""
    parts = word_diff(left, right)
    removed = " ".join(part.text for part in parts if part.kind == "removed")
    added = " ".join(part.text for part in parts if part.kind == "added")
    if len(_NEGATION.findall(left)) != len(_NEGATION.findall(right)) and _NEGATION.search(f"{removed} {added}"):
        return True
    return bool(_NUMBER.search(removed)) and bool(_NUMBER.search(added))
