"""Snapshot + evidence + now -> verdict, with the reason in the one word that the API, the log and the page show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from memoryhub.invalidation.domain.dependency import Dependency
from memoryhub.invalidation.domain.selector import Selector, Subject

UNKNOWN_WRITE = "unknown_write"  # the one word for it, in the API, the log and on the pages
CLOCK_TOLERANCE = timedelta(seconds=2)  # two processes of one machine differ by less; more means the clock stepped back


class State(StrEnum):
    FRESH = "fresh"
    EXPIRED = "expired"
    STALE = "stale"
    UNPROVEN = "unproven"
    INVALIDATED = "invalidated"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was noted about an entry when it was stored."""

    stored_at: datetime
    expires_at: datetime | None = None  # None: it does not expire by time
    usable_until: datetime | None = None  # past expires_at by the stale-while-revalidate seconds
    dependencies: tuple[Dependency, ...] = ()
    subject: Subject | None = None
    is_rooted: bool = False  # the call was made in a folder, so it may depend on files that it does not name

    @property
    def files(self) -> tuple[Dependency, ...]:
        return tuple(dependency for dependency in self.dependencies if dependency.is_path)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known at this look-up: the time, what the caller fingerprinted, what the hub sees, what was announced."""

    now: datetime
    shown: Mapping[tuple[str, str], Dependency] = field(default_factory=dict)
    watched_since: Mapping[str, datetime] = field(default_factory=dict)  # root -> watched without a gap since then
    changes: tuple[Selector, ...] = ()
    max_age: timedelta | None = None
    unknown_write: bool = False  # since the entry was computed, a tool ran that may have changed any file


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a strategy says, which strategy said it, and what proved it."""

    state: State
    strategy: str
    verified_by: str = ""
    revalidate: bool = False  # usable, but past its time: one caller should compute it anew
    because: str = ""  # UNKNOWN_WRITE where that is why a proof is asked for

    @property
    def is_fresh(self) -> bool:
        return self.state is State.FRESH
