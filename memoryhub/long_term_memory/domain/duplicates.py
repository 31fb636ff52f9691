"""Telling the same memory from a similar one.

The same text in the same scope with the same validity is one memory. A similar one is only ever proposed: the review
inbox shows both and a person decides.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Literal

from memoryhub.long_term_memory.domain import text

NEAR_DUPLICATE = 0.75  # share of common meaningful terms from which two memories are shown side by side
MIN_TERMS = 3  # shorter texts are similar by accident


def content_sha256(content: str) -> str:
    """The hex digest of the text's UTF-8 bytes: also the precondition of the file doors."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def dedupe_key(content: str, valid_from: datetime | None, valid_until: datetime | None, subject: str = "") -> str:
    """What may exist only once per scope among memories without a path: "likes tea" of Ann is not that of Bob."""
    validity = "|".join(at.isoformat() if at else "" for at in (valid_from, valid_until))
    return hashlib.sha256(f"{validity}\0{subject}\0{content}".encode()).hexdigest()


def term_overlap(left: str, right: str) -> float:
    """The Jaccard similarity of two texts' meaningful terms, 0 to 1; stop words do not count."""
    mine, theirs = (Counter(t for t in text.tokens(each) if t not in text.STOP_WORDS) for each in (left, right))
    if min(mine.total(), theirs.total()) < MIN_TERMS:
        return 1.0 if mine == theirs and mine else 0.0
    return (mine & theirs).total() / (mine | theirs).total()


@dataclass(frozen=True)
class DiffPart:
    """A run of words that both texts share, or that only one has."""

    kind: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str) -> list[DiffPart]:
    """The change from one text to the other, word by word; joined, `same` and `added` parts give `after` exactly."""
    old, new = _pieces(before), _pieces(after)
    parts: list[DiffPart] = []
    for op, a0, a1, b0, b1 in SequenceMatcher(None, old, new, autojunk=len(old) + len(new) > 4_000).get_opcodes():
        if op == "equal":
            parts.append(DiffPart("same", "".join(new[b0:b1])))
            continue
        if a1 > a0:
            parts.append(DiffPart("removed", "".join(old[a0:a1])))
        if b1 > b0:
            parts.append(DiffPart("added", "".join(new[b0:b1])))
    return parts


def _pieces(content: str) -> list[str]:
    """Words and the runs between them; a CJK character is a word of its own."""
    pieces: list[str] = []
    for character in content:
        wordy = character.isalnum() or character == "_"
        joins = wordy and pieces and pieces[-1][-1].isalnum() and character.isascii() and pieces[-1][-1].isascii()
        if joins:
            pieces[-1] += character
        else:
            pieces.append(character)
    return pieces
