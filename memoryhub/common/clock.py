"""The only reader of the clock. Rules take `now` as a value; services and doors ask here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_frozen_at: datetime | None = None
_replayed_at: ContextVar[datetime | None] = ContextVar("replayed_at", default=None)


def now() -> datetime:
    """Return the current moment as an aware UTC datetime."""
    return _replayed_at.get() or _frozen_at or datetime.now(UTC)


def monotonic() -> float:
    """Return seconds of a clock that never steps back: for durations inside one process, never for storing."""
    return time.monotonic()


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Hold `now()` at one moment in the whole process, for tests."""
    global _frozen_at
    before, _frozen_at = _frozen_at, at.astimezone(UTC)
    try:
        yield
    finally:
        _frozen_at = before


@contextmanager
def replaying(at: datetime) -> Iterator[None]:
    """Hold `now()` at one moment for this thread only: past days are replayed while the rest of the hub works on."""
    token = _replayed_at.set(at.astimezone(UTC))
    try:
        yield
    finally:
        _replayed_at.reset(token)
