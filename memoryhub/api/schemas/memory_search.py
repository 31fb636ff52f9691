"""Shapes of search, rendering and recall receipts."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.api.schemas.memories import (
    Include,
    Kind,
    MemoryOut,
    ScopeIn,
    SearchableState,
    Share,
    ShortText,
    Tags,
    memory_fields,
    several,
)
from memoryhub.long_term_memory.domain.ranking import Weights
from memoryhub.long_term_memory.models import RecallReceipt
from memoryhub.long_term_memory.queries import WhyNot
from memoryhub.long_term_memory.queries.recall import Hit
from memoryhub.long_term_memory.search.request import SearchRequest


class FiltersIn(InShape):
    """Applied before ranking and limit, never relaxed."""

    tags: Tags = []
    tags_any: Tags = []
    tags_none: Tags = []
    kind: Kind | list[Kind] | None = None
    state: SearchableState | list[SearchableState] | None = None
    session: ShortText | None = None
    since: GivenTime | None = None
    until: GivenTime | None = None
    importance_gte: Share | None = None


Weight = Annotated[float, Field(ge=0, le=1_000, allow_inf_nan=False)]


class WeightsIn(InShape):
    """What is left out counts nothing; `{"recency": 1}` is newest first."""

    relevance: Weight = 0.0
    recency: Weight = 0.0
    importance: Weight = 0.0
    access: Weight = 0.0

    def weights(self) -> Weights:
        return Weights(**self.dict())


QueryText = Annotated[str, StringConstraints(max_length=20_000)]


class SearchBase(InShape):
    query: QueryText
    scope: ScopeIn = ScopeIn()
    filters: FiltersIn = FiltersIn()
    limit: Annotated[int, Field(ge=1, le=200)] = 10
    weights: WeightsIn | None = None
    as_of: GivenTime | None = Field(
        None,
        description="Memories as they stood at that moment: each in its version of then. `explain` names the version.",
    )
    include: list[Include] = []

    def request(self, default_weights: Weights) -> SearchRequest:
        filters = self.filters
        return SearchRequest(
            query=self.query,
            scope=self.scope.names(),
            tags=filters.tags,
            tags_any=filters.tags_any,
            tags_none=filters.tags_none,
            kinds=several(filters.kind),
            states=several(filters.state),
            session=filters.session,
            since=filters.since,
            until=filters.until,
            importance_gte=filters.importance_gte,
            limit=self.limit,
            weights=self.weights.weights() if self.weights else default_weights,
            as_of=self.as_of,
            include=self.include,
        )


class SearchIn(SearchBase):
    """`record` (default: true for keys) leaves a receipt and counts as an access; `session` is who recalls."""

    explain: bool = False
    session: ShortText | None = None
    record: bool | None = None


class WhyNotIn(SearchBase):
    memory_id: ShortText
    explain: bool = False
    session: ShortText | None = None
    record: bool | None = None


class PartsOut(Schema):
    relevance: float
    recency: float
    importance: float
    access: float


class HitOut(MemoryOut):
    score: float
    rank: int
    parts: PartsOut
    explain: dict[str, Any] | None = None

    @staticmethod
    def of_hit(hit: Hit) -> "HitOut":
        return HitOut(
            **memory_fields(hit.shown),
            score=hit.score,
            rank=hit.rank,
            parts=PartsOut(**hit.parts),
            explain=hit.explanation,
        )


class SearchOut(Schema):
    items: list[HitOut]
    receipt: str | None
    notes: list[str] = Field(
        description="`embedder_unavailable`: found by words only. `as_of_partial`: so much was written since `as_of` "
        "that only the memories written last were looked up in their earlier form."
    )


class WhyNotOut(Schema):
    step: Literal["scope", "filter", "state", "expired", "superseded", "candidates", "rank", "returned"]
    detail: str
    rank: int | None
    parts: PartsOut | None

    @staticmethod
    def of(answer: WhyNot) -> "WhyNotOut":
        parts = PartsOut(**answer.parts) if answer.parts else None
        return WhyNotOut(step=answer.step, detail=answer.detail, rank=answer.rank, parts=parts)  # type: ignore[arg-type]


class RenderIn(InShape):
    """Either `ids`, or a search."""

    ids: Annotated[list[ShortText], Field(max_length=200)] | None = None
    query: QueryText | None = None
    scope: ScopeIn = ScopeIn()
    filters: FiltersIn = FiltersIn()
    limit: Annotated[int, Field(ge=1, le=200)] = 10
    weights: WeightsIn | None = None
    as_of: GivenTime | None = None
    include: list[Include] = []
    session: ShortText | None = None
    record: bool | None = None

    def search(self) -> SearchBase:
        names = ("scope", "filters", "limit", "weights", "as_of", "include")
        return SearchBase(query=self.query or "", **{name: getattr(self, name) for name in names})


class MemoryRef(Schema):
    id: str
    version: int


class RenderOut(Schema):
    text: str
    memories: list[MemoryRef]
    tokens: int
    receipt: str | None = None


class RecallItemOut(Schema):
    id: str
    rank: int
    score: float
    version: int


class RecallOut(Schema):
    id: str
    query: str
    scope: dict[str, str]
    filters: dict[str, Any]
    weights: dict[str, float]
    session: str | None
    tokens: int
    actor: dict[str, str]
    created_at: UtcTime
    items: list[RecallItemOut]

    @staticmethod
    def of(receipt: RecallReceipt) -> "RecallOut":
        lines = sorted(receipt.items.all(), key=lambda line: line.rank)
        return RecallOut(
            id=receipt.public_id,
            query=receipt.query,
            scope=receipt.scope,
            filters=receipt.filters,
            weights=receipt.weights,
            session=receipt.session.sid if receipt.session else None,
            tokens=receipt.tokens,
            actor={"kind": receipt.actor_kind, "label": receipt.actor_label},
            created_at=receipt.created_at,
            items=[
                RecallItemOut(id=line.memory.public_id, rank=line.rank, score=line.score, version=line.version)
                for line in lines
            ],
        )


class RecallPage(Schema):
    items: list[RecallOut]
    next_cursor: str | None


# --- many at once, decay ---------------------------------------------------------------------------------------------
