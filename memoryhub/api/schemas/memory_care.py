"""Shapes of bulk changes, decay and its policy."""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.api.schemas.memories import (
    Kind,
    Names,
    PathText,
    ScopeIn,
    Share,
    ShortText,
    State,
    TagName,
    Tags,
    TrustName,
    several,
)
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.queries import MemoryFilter
from memoryhub.long_term_memory.services import BulkAction


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
