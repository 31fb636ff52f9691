"""Telling the same memory from a similar one.

The same text in the same scope with the same validity is one memory. A similar one is only ever proposed: the review
inbox shows both and a person decides.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Literal

import numpy as np
import numpy.typing as npt

from memoryhub.long_term_memory.domain import text

NEAR_DUPLICATE = 0.75  # share of common meaningful terms from which two memories are shown side by side
MIN_TERMS = 3  # shorter texts are similar by accident
SKETCH_BYTES, SKETCH_CHARS = 18, 24  # in base 64 without padding
SKETCH_TERMS = 64  # of a longer text, those with the lowest numbers: of two like texts mostly the same ones
LIKELY = 0.5  # share of common bits from which two texts are worth comparing


def content_sha256(content: str) -> str:
    """The hex digest of the text's UTF-8 bytes: also the precondition of the file doors."""
    return hashlib.sha256(content.encode("utf-8")).hexdigest()


def dedupe_key(
    content: str,
    valid_from: datetime | None,
    valid_until: datetime | None,
    subject: str = "",
    words: Sequence[str] | None = None,
) -> str:
    """What may exist only once per scope among memories without a path: "likes tea" of Ann is not that of Bob.

    64 characters: the text's sketch, which is nearly the same for nearly the same text, then 240 bits of a digest of all
    that tells two memories apart. So the index that refuses doubles also knows a scope's near duplicates. `words` are
    the text's, where they are known already.
    """
    validity = "|".join(at.isoformat() if at else "" for at in (valid_from, valid_until))
    digest = hashlib.sha256(f"{validity}\0{subject}\0{content}".encode()).digest()
    return base64.urlsafe_b64encode(sketch(text.words(content) if words is None else words) + digest[:30]).decode()


def sketch(words: Sequence[str]) -> bytes:
    """A text's meaningful terms as bits, each term one of 144."""
    terms = text.meaningful_terms(words)
    bits = 0
    for term in sorted(terms)[:SKETCH_TERMS] if len(terms) > SKETCH_TERMS else terms:
        bits |= 1 << term % (8 * SKETCH_BYTES)
    return bits.to_bytes(SKETCH_BYTES)


def rank_by_sketch(key: str, keys: Sequence[str]) -> list[int]:
    """Places of the keys whose texts may be nearly the same as the first key's, the likeliest first."""
    if not keys:
        return []
    mine, others = _sketches([key]), _sketches(keys)
    common = np.bitwise_count(others & mine).sum(axis=1, dtype=np.int32)
    either = np.bitwise_count(others | mine).sum(axis=1, dtype=np.int32)
    share = common / np.maximum(either, 1)
    order = np.argsort(-share, kind="stable")
    return [int(place) for place in order[: int((share >= LIKELY).sum())]]


def _sketches(keys: Sequence[str]) -> npt.NDArray[np.uint8]:
    packed = base64.urlsafe_b64decode("".join([key[:SKETCH_CHARS] for key in keys]))
    return np.frombuffer(packed, dtype=np.uint8).reshape(-1, SKETCH_BYTES)


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
