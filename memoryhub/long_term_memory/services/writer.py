"""The words of a write: who writes, what a new memory looks like, what came of it, and what can go wrong."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, Literal

from memoryhub.audit.models import ChangeSet
from memoryhub.common import errors
from memoryhub.long_term_memory.domain.scoping import ANYWHERE, ScopeNames
from memoryhub.long_term_memory.models import MemoryStore
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.principals import Actor, Binding, Principal

MAX_DRAFTS = 1_000  # of one call through a door; imports come in chunks
MAX_TAGS = 100
MAX_TAG_CHARS = 200


class UnknownMemory(errors.NotFound):
    slug = "unknown-memory"
    title = "Unknown memory"


class UnknownVersion(errors.NotFound):
    slug = "unknown-version"
    title = "Unknown version"


class InvalidMemory(errors.Invalid):
    slug = "invalid-memory"
    title = "This memory can't be stored"


class MemoryTooLarge(errors.TooLarge):
    slug = "memory-too-large"
    title = "A memory takes at most 100 KiB"


class ChangedMeanwhile(errors.PreconditionFailed):
    """Carries the current version as `current`, so that the caller can show both."""

    slug = "changed-meanwhile"
    title = "The memory has changed meanwhile"


class PathTaken(errors.Conflict):
    """Carries the id of the memory that stands there as `conflicting_id`."""

    slug = "path-taken"
    title = "There is a memory at this path already"


class TextTaken(errors.Conflict):
    slug = "text-taken"
    title = "This scope holds the same text already"


class ClosesCircle(errors.Conflict):
    slug = "closes-circle"
    title = "Two memories can't stand in each other's place"


class HoldsSecrets(errors.Invalid):
    slug = "holds-secrets"
    title = "The text holds a secret"


class TooManyWrites(errors.TooMany):
    slug = "too-many-writes"
    title = "Too many writes in a short time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, through which door and why. With `change_set` a write joins one that is already open."""

    workspace: Workspace
    actor: Actor
    door: str = ""
    reason: str = ""
    binding: Binding = field(default_factory=Binding)
    session: Session | None = None
    change_set: ChangeSet | None = None

    @classmethod
    def of(cls, principal: Principal, *, door: str, reason: str = "", change_set: ChangeSet | None = None) -> "Writer":
        return cls(
            workspace=principal.workspace,
            actor=principal.actor,
            door=door,
            reason=reason,
            binding=principal.binding,
            change_set=change_set,
        )


@dataclass(frozen=True, kw_only=True)
class MemoryDraft:
    """A memory that is not stored yet. Only content and scope are needed; imports bring ids and times along."""

    content: str
    scope: ScopeNames = ANYWHERE
    session: str | None = None  # the caller's session id
    event: str | None = None
    subject: str = ""
    kind: str = "semantic"
    importance: float = 0.5
    tags: Sequence[str] = ()
    path: str | None = None
    pinned: bool = False
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    created_at: datetime | None = None
    supersedes: str | None = None
    trust: str | None = None  # None: as the guards say
    store: MemoryStore | None = None
    context_before: Sequence[str] = ()  # neighbours in the source session, the nearest first
    context_after: Sequence[str] = ()
    # What only imports and restores bring:
    public_id: str | None = None
    last_accessed_at: datetime | None = None
    access_count: int = 0
    content_changed_at: datetime | None = None
    metadata_changed_at: datetime | None = None
    state: str = "active"
    origin: dict[str, Any] | None = None


Outcome = Literal["created", "duplicate", "conflict", "recalled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of one draft, in the order of the drafts.

    `conflict`: the id or path is taken by another text (imports only; other doors get an error). `recalled`: the text
    came from a recall and was not stored again. `restorable` names a forgotten memory of the same text.
    """

    outcome: Outcome
    id: str
    state: str = "active"
    trust: str = "trusted"
    version: int = 1
    flags: Sequence[str] = ()
    redactions: int = 0
    restorable: str | None = None
    detail: str = ""

    @property
    def created(self) -> bool:
        return self.outcome == "created"

    @property
    def deduplicated(self) -> bool:
        return self.outcome == "duplicate"


class _Unset(Enum):
    UNSET = "unset"


UNSET: Final = _Unset.UNSET
Unset = Literal[_Unset.UNSET]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanges:
    """The fields an edit sets; what is UNSET stays as it is. `add_tags`/`remove_tags` work on top of `tags`."""

    content: str | Unset = UNSET
    subject: str | Unset = UNSET
    kind: str | Unset = UNSET
    importance: float | Unset = UNSET
    tags: Sequence[str] | Unset = UNSET
    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()
    pinned: bool | Unset = UNSET
    path: str | Unset | None = UNSET
    scope: ScopeNames | Unset = UNSET
    valid_from: datetime | Unset | None = UNSET
    valid_until: datetime | Unset | None = UNSET
    expires_at: datetime | Unset | None = UNSET
    trust: str | Unset = UNSET
    archived: bool | Unset = UNSET  # True archives, False brings back


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What a change of many memories did, or would do."""

    matched: int
    changed: int
    skipped: list[dict[str, str]] = field(default_factory=list)  # {"id", "reason"}
    change_set: ChangeSet | None = None
