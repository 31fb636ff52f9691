"""Writes that nobody read: the premium was paid and bought nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

LIFETIME_5M = timedelta(minutes=5)
LIFETIME_1H = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ChainStep:
    """A request of a chain, with how much the next one of the same chain and model read (None where there is none)."""

    started_at: datetime
    read: int
    write_5m: int
    write_1h: int
    next_read: int | None


@dataclass(frozen=True, slots=True)
class UnreadWrite:
    """Tokens written and never read, by lifetime."""

    write_5m: int
    write_1h: int


def unread_write(step: ChainStep, now: datetime) -> UnreadWrite:
    """What of a request's writes was not read.

    The next request reads a prefix: first what this one read, then what it wrote, of which the 1h part comes first. Without
    a next request a write counts once its lifetime is over.
    """
    if step.next_read is None:
        age = now - step.started_at
        return UnreadWrite(step.write_5m if age > LIFETIME_5M else 0, step.write_1h if age > LIFETIME_1H else 0)
    covered = max(0, step.next_read - step.read)
    return UnreadWrite(max(0, step.write_5m - max(0, covered - step.write_1h)), max(0, step.write_1h - covered))


def median(values: Iterable[float]) -> float | None:
    """The middle value; None of nothing."""
    ranked = sorted(values)
    if not ranked:
        return None
    middle = len(ranked) // 2
    return ranked[middle] if len(ranked) % 2 else (ranked[middle - 1] + ranked[middle]) / 2


def waits(times: Iterable[tuple[datetime, datetime]]) -> Iterator[float]:
    """Seconds from the start to the first byte; a clock that ran backwards is left out."""
    for started_at, first_byte_at in times:
        seconds = (first_byte_at - started_at).total_seconds()
        if seconds >= 0:
            yield seconds
