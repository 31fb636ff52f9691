"""Shapes of memories: what comes in, what goes out."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.audit.models import ChangeSet
from memoryhub.flows.memory_price import MemoryPrice
from memoryhub.long_term_memory.domain.ranking import Weights
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryVersion, RecallReceipt, ReviewItem
from memoryhub.long_term_memory.queries import MemoryFilter, WhyNot, tag_names
from memoryhub.long_term_memory.queries.recall import Hit
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import BulkAction, MemoryChanges, MemoryDraft, Remembered

Kind = Literal["episodic", "semantic", "procedural"]
State = Literal["active", "fading", "archived", "forgotten"]
SearchableState = Literal["active", "fading", "archived"]
TrustName = Literal["trusted", "unreviewed", "quarantined"]
OrderName = Literal["recency", "importance", "strength", "created", "accessed"]
Include = Literal["archived", "superseded", "quarantined"]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
TagName = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Tags = Annotated[list[TagName], Field(max_length=100)]
Content = Annotated[str, Field(max_length=120_000, description="At most 100 KiB in UTF-8.")]
ShortText = Annotated[str, StringConstraints(max_length=200)]
PathText = Annotated[str, StringConstraints(max_length=1024)]
Names = Annotated[str, StringConstraints(max_length=500)]


def several(value: str | Sequence[str] | None) -> list[str]:
    """One name or a list of them, as a list."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


class ScopeIn(InShape):
    agent: Names | None = None
    user: Names | None = None
    project: Names | None = None

    def names(self) -> ScopeNames:
        return ScopeNames(self.agent or None, self.user or None, self.project or None)


class ScopeOut(Schema):
    agent: str | None
    user: str | None
    project: str | None


class MemoryIn(InShape):
    """A memory to keep. `scope` may be left out where the key is bound to one."""

    content: Content
    scope: ScopeIn = ScopeIn()
    session: ShortText | None = None
    event: ShortText | None = None
    subject: ShortText = ""
    kind: Kind = "semantic"
    importance: Share = 0.5
    tags: Tags = []
    path: PathText | None = None
    pinned: bool = False
    valid_from: GivenTime | None = None
    valid_until: GivenTime | None = None
    expires_at: GivenTime | None = None
    created_at: GivenTime | None = None
    supersedes: ShortText | None = None

    def draft(self) -> MemoryDraft:
        given = self.dict(exclude={"scope"})
        return MemoryDraft(scope=self.scope.names(), **given)


class RememberedOut(Schema):
    id: str
    created: bool
    deduplicated: bool
    state: str
    trust: str
    version: int
    flags: list[str]
    redactions: int = Field(description="How many secrets were taken out before storing.")
    restorable: str | None = Field(description="A forgotten memory of the same text, which can be restored instead.")

    @staticmethod
    def of(result: Remembered) -> "RememberedOut":
        return RememberedOut(
            id=result.id,
            created=result.created,
            deduplicated=result.deduplicated,
            state=result.state,
            trust=result.trust,
            version=result.version,
            flags=list(result.flags),
            redactions=result.redactions,
            restorable=result.restorable,
        )


class RememberedList(Schema):
    items: list[RememberedOut]


class MemoryOut(Schema):
    id: str
    content: str
    scope: ScopeOut
    session: str | None
    event: str | None
    subject: str
    kind: str
    importance: float
    strength: float
    tags: list[str]
    path: str | None
    pinned: bool
    state: str
    state_since: UtcTime
    trust: str
    flags: list[str]
    version: int
    content_sha256: str
    created_at: UtcTime
    content_changed_at: UtcTime
    metadata_changed_at: UtcTime
    last_accessed_at: UtcTime | None
    access_count: int
    helpful_count: int
    harmful_count: int
    valid_from: UtcTime | None
    valid_until: UtcTime | None
    expires_at: UtcTime | None
    superseded_by: str | None
    fades_at: UtcTime | None
    archives_at: UtcTime | None
    forgets_at: UtcTime | None

    @staticmethod
    def of(memory: Memory) -> "MemoryOut":
        return MemoryOut(**memory_fields(memory))


_SAME = (
    "content", "subject", "kind", "importance", "path", "pinned", "state", "state_since", "trust", "flags", "version",
    "content_sha256", "created_at", "content_changed_at", "metadata_changed_at", "last_accessed_at", "access_count",
    "helpful_count", "harmful_count", "valid_from", "valid_until", "expires_at", "fades_at", "archives_at", "forgets_at",
)  # fmt: skip


def memory_fields(memory: Memory) -> dict[str, Any]:
    """The values of a MemoryOut."""
    return {
        **{name: getattr(memory, name) for name in _SAME},
        "id": memory.public_id,
        "scope": ScopeOut(**memory.scope.as_dict()),
        "session": memory.session.sid if memory.session else None,
        "event": memory.event_id or None,
        "strength": round(memory.strength, 6),
        "tags": tag_names(memory),
        "superseded_by": memory.superseded_by.public_id if memory.superseded_by else None,
    }


class MemoryPage(Schema):
    items: list[MemoryOut]
    next_cursor: str | None


class MemoryPatch(InShape):
    """The fields to set; what is left out stays. `null` clears a time or the path."""

    content: Content | None = None
    scope: ScopeIn | None = None
    subject: ShortText | None = None
    kind: Kind | None = None
    importance: Share | None = None
    tags: Tags | None = None
    add_tags: Tags = []
    remove_tags: Tags = []
    pinned: bool | None = None
    archived: bool | None = None
    path: PathText | None = None
    valid_from: GivenTime | None = None
    valid_until: GivenTime | None = None
    expires_at: GivenTime | None = None
    trust: TrustName | None = None
    reason: Names = ""

    def changes(self) -> MemoryChanges:
        """Only what the body named; null stands for itself where a field can be empty, and for "leave it" elsewhere."""
        clearable = {"path", "valid_from", "valid_until", "expires_at"}
        given = {
            name: getattr(self, name)
            for name in self.model_fields_set - {"reason", "scope"}
            if name in clearable or getattr(self, name) is not None
        }
        if self.scope is not None:
            given["scope"] = self.scope.names()
        return MemoryChanges(**given)


class ForgottenOut(Schema):
    id: str
    state: str
    version: int
    change_set: str | None = Field(description="Revert this change set to undo.")


class ErasedOut(Schema):
    memories: int
    versions: int
    receipts: int
    backups: list[dict[str, str]] = Field(description="Backups that may still hold it, and when each is gone.")


class EraseIn(InShape):
    scope: ScopeIn


class RestoreIn(InShape):
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    reason: Names = ""


class SupersedeIn(InShape):
    """The newer memory; what is left out is taken from the older one."""

    content: Content
    subject: ShortText = ""
    kind: Kind | None = None
    importance: Share | None = None
    tags: Tags = []
    session: ShortText | None = None
    event: ShortText | None = None
    valid_from: GivenTime | None = None
    valid_until: GivenTime | None = None
    expires_at: GivenTime | None = None
    reason: Names = ""

    def draft(self) -> MemoryDraft:
        given = self.dict(exclude={"reason"}, exclude_none=True)
        return MemoryDraft(**given)


class PlacePriceOut(Schema):
    place: str
    requests: int
    breaks: int
    usd: str
    usd_per_day: str


class PriceOut(Schema):
    """Amounts are decimal strings in US dollars."""

    days: int
    tokens: int
    usd_per_day: str
    tail_usd_per_day: str | None = Field(description="What the same breaks would cost behind the conversation's tail.")
    places: list[PlacePriceOut]

    @staticmethod
    def of(price: MemoryPrice | None) -> "PriceOut":
        if price is None:
            return PriceOut(days=0, tokens=0, usd_per_day="0", tail_usd_per_day=None, places=[])
        return PriceOut(
            days=price.days,
            tokens=price.tokens,
            usd_per_day=str(price.usd_per_day),
            tail_usd_per_day=None if price.tail_usd_per_day is None else str(price.tail_usd_per_day),
            places=[
                PlacePriceOut(
                    place=place.place,
                    requests=place.requests,
                    breaks=place.breaks,
                    usd=str(place.usd),
                    usd_per_day=str(place.usd_per_day),
                )
                for place in price.places
            ],
        )


class FeedbackIn(InShape):
    helpful: bool
    reason: Names = ""


class FeedbackOut(Schema):
    id: str
    helpful_count: int
    harmful_count: int


class VersionOut(Schema):
    id: str
    version: int
    operation: str
    content: str | None
    content_sha256: str | None
    facts: dict[str, Any] = Field(description="Every other field as it was.")
    restored_from: int | None
    reason: str
    actor: dict[str, str]
    session: str | None
    change_set: str | None
    created_at: UtcTime
    redacted_at: UtcTime | None

    @staticmethod
    def of(row: MemoryVersion) -> "VersionOut":
        return VersionOut(
            id=row.public_id,
            version=row.number,
            operation=row.operation,
            content=row.content,
            content_sha256=row.content_sha256 or None,
            facts={name: value for name, value in row.facts.items() if name != "superseded_by"},
            restored_from=row.restored_from,
            reason=row.reason,
            actor={"kind": row.actor_kind, "id": row.actor_id, "label": row.actor_label},
            session=row.session.sid if row.session else None,
            change_set=row.change_set.public_id if row.change_set else None,
            created_at=row.created_at,
            redacted_at=row.redacted_at,
        )


class VersionPage(Schema):
    items: list[VersionOut]
    next_cursor: str | None


# --- search ----------------------------------------------------------------------------------------------------------
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
    as_of: GivenTime | None = None
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
            **memory_fields(hit.memory),
            score=hit.score,
            rank=hit.rank,
            parts=PartsOut(**hit.parts),
            explain=hit.explanation,
        )


class SearchOut(Schema):
    items: list[HitOut]
    receipt: str | None
    notes: list[str] = Field(description="`embedder_unavailable`: found by words only.")


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
class BulkFilterIn(InShape):
    """Every named field narrows; an empty filter is refused."""

    ids: Annotated[list[ShortText], Field(max_length=10_000)] | None = None
    scope: ScopeIn = ScopeIn()
    agent: Names | None = None
    user: Names | None = None
    project: Names | None = None
    tag: TagName | None = None
    tags: Tags = []
    tags_any: Tags = []
    tags_none: Tags = []
    kind: Kind | list[Kind] | None = None
    state: State | list[State] | None = None
    trust: TrustName | list[TrustName] | None = None
    session: ShortText | None = None
    path_prefix: PathText | None = None
    pinned: bool | None = None
    since: GivenTime | None = None
    until: GivenTime | None = None
    importance_gte: Share | None = None
    importance_lte: Share | None = None
    strength_lte: Share | None = None
    text: Names = ""

    def wanted(self) -> MemoryFilter:
        named = self.scope.names()
        return MemoryFilter(
            ids=self.ids,
            scope=ScopeNames(self.agent or named.agent, self.user or named.user, self.project or named.project),
            tags=_unique([*([self.tag] if self.tag else []), *self.tags]),
            tags_any=tuple(self.tags_any),
            tags_none=tuple(self.tags_none),
            kinds=tuple(several(self.kind)),
            states=tuple(several(self.state)),
            trusts=tuple(several(self.trust)),
            **{
                name: getattr(self, name)
                for name in (
                    "session", "path_prefix", "pinned", "since", "until", "importance_gte", "importance_lte",
                    "strength_lte", "text",
                )
            },
        )  # fmt: skip


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


class BulkActionIn(InShape):
    add_tags: Tags = []
    remove_tags: Tags = []
    importance: Share | None = None
    archive: bool | None = None
    forget: bool = False
    restore: bool = False
    pin: bool | None = None

    def action(self) -> BulkAction:
        given = self.dict()
        return BulkAction(**{**given, "add_tags": tuple(self.add_tags), "remove_tags": tuple(self.remove_tags)})


class BulkIn(InShape):
    filter: BulkFilterIn = BulkFilterIn()
    action: BulkActionIn
    dry_run: bool = False
    reason: Names = ""


class SkippedOut(Schema):
    id: str
    reason: str


class BulkOut(Schema):
    matched: int
    changed: int
    skipped: list[SkippedOut]
    change_set: str | None
    dry_run: bool = False


class DecayIn(InShape):
    dry_run: bool = False
    at: GivenTime | None = None


class DecayOut(Schema):
    dry_run: bool
    at: UtcTime
    fading: int
    archived: int
    forgotten: int
    items: list[dict[str, Any]] = Field(description="The first 200 memories concerned: id, from, to, at, importance.")
    change_set: str | None


PolicyFields = dict[str, Any]


class PolicyPart(InShape):
    """Fields of a decay policy; in an exception only those that differ."""

    curve: Literal["seed", "half_life"] | None = None
    factor: Annotated[float, Field(gt=0, lt=1)] | None = None
    half_life_days: Annotated[float, Field(gt=0, le=36_500)] | None = None
    floor: Share | None = None
    fade_threshold: Share | None = None
    archive_threshold: Share | None = None
    forget_after_days: Annotated[float, Field(ge=0, le=36_500)] | None = None
    access_window_seconds: Annotated[int, Field(ge=0, le=2_592_000)] | None = None
    protected_tags: Tags | None = None

    def given(self) -> PolicyFields:
        """What the body named; `forget_after_days: null` means never, null elsewhere leaves the field as it is."""
        return {
            name: getattr(self, name)
            for name in self.model_fields_set & set(PolicyPart.model_fields)
            if name == "forget_after_days" or getattr(self, name) is not None
        }


class PolicyIn(PolicyPart):
    """Fields that are left out stay as they are; `by_kind` and `by_tag` replace the exceptions as a whole."""

    by_kind: dict[Kind, PolicyPart] | None = None
    by_tag: Annotated[dict[TagName, PolicyPart], Field(max_length=200)] | None = None
    dry_run: bool = False
    reason: Names = ""

    def changes(self) -> PolicyFields:
        changes = self.given()
        if self.by_kind is not None:
            changes["by_kind"] = {kind: part.given() for kind, part in self.by_kind.items()}
        if self.by_tag is not None:
            changes["by_tag"] = {tag: part.given() for tag, part in self.by_tag.items()}
        return changes


class PolicyOut(Schema):
    curve: str
    factor: float
    half_life_days: float
    floor: float
    fade_threshold: float
    archive_threshold: float
    forget_after_days: float | None
    access_window_seconds: int
    protected_tags: list[str]
    by_kind: dict[str, dict[str, Any]]
    by_tag: dict[str, dict[str, Any]]


class PolicySaved(PolicyOut):
    dry_run: bool
    matched: int
    would_change: int
    changes: dict[str, int] = Field(description="How many memories move, by their new state.")
    items: list[dict[str, Any]]
    change_set: str | None


# --- tags, review, changes -------------------------------------------------------------------------------------------
class TagOut(Schema):
    name: str
    count: int


class TagPage(Schema):
    items: list[TagOut]
    next_cursor: str | None


class TagRename(InShape):
    from_: TagName = Field(alias="from")
    to: TagName
    reason: Names = ""


class TagMerge(InShape):
    """Several tags become one."""

    from_: TagName | Annotated[list[TagName], Field(min_length=1, max_length=100)] = Field(alias="from")
    to: TagName
    reason: Names = ""


class ReviewOut(Schema):
    id: str
    kind: str
    state: str
    score: float
    memory: MemoryOut | None
    other: MemoryOut | None
    candidate: dict[str, Any] | None
    decisions: list[str]
    decision: str | None
    decided_by: str | None
    decided_at: UtcTime | None
    created_at: UtcTime

    @staticmethod
    def of(item: ReviewItem, decisions: Iterable[str]) -> "ReviewOut":
        return ReviewOut(
            id=item.public_id,
            kind=item.kind,
            state=item.state,
            score=item.score,
            memory=MemoryOut.of(item.memory) if item.memory else None,
            other=MemoryOut.of(item.other) if item.other else None,
            candidate=item.candidate,
            decisions=list(decisions),
            decision=item.decision or None,
            decided_by=item.decided_by or None,
            decided_at=item.decided_at,
            created_at=item.created_at,
        )


class ReviewPage(Schema):
    items: list[ReviewOut]
    next_cursor: str | None


class DecisionIn(InShape):
    """A decision; `valid_from` is for keeping both of a contradiction, the others change an extracted candidate."""

    decision: Annotated[str, StringConstraints(max_length=20)]
    valid_from: GivenTime | None = None
    content: Content | None = None
    subject: ShortText | None = None
    kind: Kind | None = None
    importance: Share | None = None
    tags: Tags | None = None
    reason: Names = ""

    def options(self) -> dict[str, Any]:
        return self.dict(exclude={"decision", "reason"}, exclude_none=True)


class ChangeSetOut(Schema):
    id: str
    action: str
    reason: str
    door: str
    actor: dict[str, str]
    subject_count: int
    reverts: str | None
    created_at: UtcTime

    @staticmethod
    def of(row: ChangeSet) -> "ChangeSetOut":
        return ChangeSetOut(
            id=row.public_id,
            action=row.action,
            reason=row.reason,
            door=row.door,
            actor={"kind": row.actor_kind, "id": row.actor_id, "label": row.actor_label},
            subject_count=row.subject_count,
            reverts=row.reverts.public_id if row.reverts else None,
            created_at=row.created_at,
        )


class ChangeSetPage(Schema):
    items: list[ChangeSetOut]
    next_cursor: str | None


class RevertIn(InShape):
    force: bool = False
    dry_run: bool = False
    reason: Names = ""


class RevertOut(Schema):
    reverted: int
    skipped: list[SkippedOut]
    change_set: str | None
    dry_run: bool
