"""What search asks of a database: the documents that hold a term, inside a scope, newest first.

Small scopes need no index: all their documents are read and scored. The index answers for scopes above that size, and
gives candidates only; scoring is the same everywhere, so both databases rank alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Where:
    """An SQL condition over `d` (the search document) with its values."""

    sql: str = "1 = 1"
    values: list[Any] = field(default_factory=list)

    def __and__(self, other: "Where") -> "Where":
        return Where(f"{self.sql} AND {other.sql}", [*self.values, *other.values])


class TermIndex(Protocol):
    """The full-text index of one database. It holds numbers, never words."""

    def add(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        """List documents (key, tokens)."""
        ...

    def remove(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        """Take documents out again; the tokens are those they were added with."""
        ...

    def find(self, *, scopes: Sequence[int], terms: Sequence[int], where: Where, cap: int) -> list[int]:
        """The newest `cap` keys that stand under one of the scope tokens (or anywhere, without any) and all of the terms,
        and pass `where`.
        """
        ...

    def compact(self) -> None:
        """Drop what removed documents left behind."""
        ...
