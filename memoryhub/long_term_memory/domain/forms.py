"""The form of a memory: every field that a version remembers and a revert brings back, as plain JSON values."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

TIMES = ("valid_from", "valid_until", "expires_at")


def pack_time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def unpack_time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of the facts that two forms do not share."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
