"""What a search asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memoryhub.long_term_memory.domain.ranking import DEFAULT_WEIGHTS, Weights
from memoryhub.long_term_memory.domain.scoping import ANYWHERE, ScopeNames

Include = Literal["archived", "superseded", "quarantined"]
INCLUDES: tuple[Include, ...] = ("archived", "superseded", "quarantined")
SEARCHABLE_STATES = ("active", "fading", "archived")
MAX_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A query with its scope (named dimensions must match), filters (before ranking, never relaxed) and weights."""

    query: str
    scope: ScopeNames = ANYWHERE
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    tags_none: Sequence[str] = ()
    kinds: Sequence[str] = ()
    states: Sequence[str] = ()
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    importance_gte: float | None = None
    limit: int = 10
    weights: Weights = DEFAULT_WEIGHTS
    as_of: datetime | None = None
    include: Sequence[str] = ()
