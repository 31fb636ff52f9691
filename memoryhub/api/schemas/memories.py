"""Shapes of memories: what comes in, what goes out."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.flows.memory_price import MemoryPrice
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries import tag_names
from memoryhub.long_term_memory.services import MemoryChanges, MemoryDraft, Remembered

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
    backups: list[dict[str, str | None]] = Field(
        description="Copies that may still hold it, and when each is gone; null: not by itself."
    )


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
    """Amounts are decimal strings in US dollars. What requests without a kept body cost is not in them."""

    days: int
    tokens: int
    requests_read: int = Field(description="Requests of the sessions concerned whose body was looked through.")
    requests_unread: int = Field(description="Requests of these sessions that came without a body: not counted.")
    usd_per_day: str
    tail_usd_per_day: str | None = Field(description="What the same breaks would cost behind the conversation's tail.")
    places: list[PlacePriceOut]

    @staticmethod
    def of(price: MemoryPrice | None) -> "PriceOut":
        if price is None:
            nothing = MemoryPrice(days=0, tokens=0)
            return PriceOut.of(nothing)
        return PriceOut(
            days=price.days,
            tokens=price.tokens,
            requests_read=price.requests_read,
            requests_unread=price.requests_unread,
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
