"""The only reader of the clock. Rules take `now` as a value; services and doors ask here."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

_frozen_at: datetime | None = None


def now() -> datetime:
    """Return the current moment as an aware UTC datetime."""
    return _frozen_at or datetime.now(UTC)


def monotonic() -> float:
    """Return seconds of a clock that never steps back: for durations inside one process, never for storing."""
    return time.monotonic()


@contextmanager
def frozen(at: datetime) -> Iterator[None]:
    """Hold `now()` at one moment, for tests and for jobs that replay a past day."""
    global _frozen_at
    before, _frozen_at = _frozen_at, at.astimezone(UTC)
    try:
        yield
    finally:
        _frozen_at = before
