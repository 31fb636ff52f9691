"""Writes that nobody read: the premium was paid and bought nothing. And how long answers took to begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor, log

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


def waits(times: Iterable[tuple[datetime, datetime]]) -> Iterator[float]:
    """Seconds from the start to the first byte; a clock that ran backwards is left out."""
    for started_at, first_byte_at in times:
        seconds = (first_byte_at - started_at).total_seconds()
        if seconds >= 0:
            yield seconds


# Waits are counted in classes that are each 5 per cent wide, so that days can be added up and still give a median.
CLASS_WIDTH = 1.05
SHORTEST_WAIT = 0.001


def wait_class(seconds: float) -> int:
    """Which class a wait belongs to: class n holds waits from 1 ms times 1.05^n up to the next; shorter ones are in class 0."""
    return max(0, floor(log(max(seconds, SHORTEST_WAIT) / SHORTEST_WAIT, CLASS_WIDTH) + 1e-9))


def median_of(classes: Mapping[int, int]) -> float | None:
    """The middle wait in seconds, within 2.5 per cent; None of nothing."""
    count = sum(classes.values())
    if not count:
        return None
    lower, upper = _class_at(classes, (count - 1) // 2), _class_at(classes, count // 2)
    return (_middle(lower) + _middle(upper)) / 2


def _class_at(classes: Mapping[int, int], place: int) -> int:
    for number in sorted(classes):
        place -= classes[number]
        if place < 0:
            return number
    raise IndexError(place)


def _middle(number: int) -> float:
    return float(SHORTEST_WAIT * CLASS_WIDTH ** (number + 0.5))
