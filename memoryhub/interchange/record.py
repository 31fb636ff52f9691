"""What every format is read into and written from: one memory, with the line it stood on."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

# The hub's own limit for one memory (100 KiB, the same as Anthropic's memory stores allow).
MAX_CONTENT_BYTES = 102_400
# What a foreign format may add beside the content: room for metadata and one large embedding.
MAX_ORIGIN_BYTES = 262_144
MAX_TAGS = 100
MAX_TAG_CHARACTERS = 200
MAX_NAME_CHARACTERS = 200
MAX_ACCESS_COUNT = 2**31 - 1


class BadRecord(ValueError):
    """A record that can't be kept; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A piece of a file that was not read, and why."""

    line: int
    reason: str
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One memory as a file tells it; None means that the file does not say."""

    content: str
    line: int = 0
    file: str = ""
    public_id: str | None = None
    agent: str | None = None
    user: str | None = None
    project: str | None = None
    session: str | None = None
    event: str | None = None
    subject: str = ""
    kind: str | None = None
    importance: float | None = None
    tags: tuple[str, ...] = ()
    pinned: bool = False
    path: str | None = None
    state: str | None = None
    trust: str | None = None
    created_at: datetime | None = None
    content_changed_at: datetime | None = None
    metadata_changed_at: datetime | None = None
    last_accessed_at: datetime | None = None
    access_count: int = 0
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    expires_at: datetime | None = None
    superseded_by: str | None = None
    # What the format holds and the fields above do not: {"format": NAME, ...}. Never the content itself, so that
    # redacting or erasing the content leaves nothing behind.
    origin: Mapping[str, Any] | None = None
    # Earlier contents, newest last, as the hub's own format writes them.
    versions: tuple[Mapping[str, Any], ...] = field(default=())


Reading = Iterator[MemoryRecord | Problem]
Writing = Iterator[str]
Records = Iterable[MemoryRecord]
