"""Points in time as other systems write them: ISO 8601 with or without a zone, epoch seconds or milliseconds."""

import math
import re
from datetime import UTC, datetime
from typing import Any

from memoryhub.interchange.record import BadRecord

# Above this, an epoch number is milliseconds: as seconds it would lie in the year 5138.
EPOCH_MILLISECONDS_FROM = 100_000_000_000
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
# "2026-01-02T03:04:05+00:00Z": what `isoformat() + "Z"` makes of an aware datetime.
_OFFSET_AND_Z = re.compile(r"[+-]\d\d:?\d\d[zZ]$")


def read_time(value: Any, name: str) -> datetime | None:
    """The moment a field names as aware UTC; a time without a zone is taken as UTC; nothing is None."""
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return _in_utc(value, name)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise BadRecord(f"{name} is not a time")
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return _from_iso(text, name)
        value = float(text)
    return _from_epoch(value, name)


def write_time(value: datetime | None) -> str | None:
    """`2026-01-02T03:04:05Z`, with microseconds only where there are any."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _from_iso(text: str, name: str) -> datetime:
    if _OFFSET_AND_Z.search(text):
        text = text[:-1]
    try:
        value = datetime.fromisoformat(text.upper())
    except ValueError:
        raise BadRecord(f"{name} is not a time: {text[:40]!r}") from None
    return _in_utc(value, name)


def _from_epoch(value: float, name: str) -> datetime:
    try:
        if not math.isfinite(value):
            raise ValueError
        seconds = value / 1000 if abs(value) >= EPOCH_MILLISECONDS_FROM else value
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise BadRecord(f"{name} is out of range") from None


def _in_utc(value: datetime, name: str) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except (OverflowError, ValueError):
        raise BadRecord(f"{name} is out of range") from None
