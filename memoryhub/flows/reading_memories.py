"""Records of a file made ready to be stored: as drafts that passed the hub's rules and guards, in chunks.

No database is asked, so a long file is read by a process of its own while the chunk before is being stored.
"""

import json
from collections.abc import Generator, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from memoryhub.common import clock, errors
from memoryhub.interchange.formats import get_format
from memoryhub.interchange.record import MemoryRecord, Problem
from memoryhub.long_term_memory.domain import guards
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.services.files import scope_of_files
from memoryhub.long_term_memory.services.preparing import Preparation, Prepared
from memoryhub.long_term_memory.services.writer import MemoryDraft

CHUNK = 500  # records of one transaction: other writers wait for about a tenth of a second
WINDOW = 10_000  # records that are looked at together: some 20 MB
DEFAULT_IMPORTANCE = 0.5

Item = MemoryRecord | Problem


def read_chunks(stream: BinaryIO, format: str, preparation: Preparation) -> Generator[list["ReadMemory | Problem"]]:
    """The records of a file in this format."""
    return Reader(preparation).chunks(get_format(format).read(stream))


def _by_scope(items: Iterator[Item]) -> Iterator[list[Item]]:
    """A file's items in windows, and of a long one those of each scope beside each other.

    A scope's rows stand together in the database too: stored so, a chunk touches less than half of the pages that it would if a
    thousand users' memories came mixed. Within a scope the order of the file stays; so it does where an id stands twice,
    which only the first may have.
    """
    while window := list(islice(items, WINDOW)):
        ids = [item.public_id for item in window if isinstance(item, MemoryRecord) and item.public_id]
        if len(window) > CHUNK and len(set(ids)) == len(ids):
            window.sort(key=_scope)
        yield window


def _scope(item: Item) -> tuple[str, str, str]:
    return ("", "", "") if isinstance(item, Problem) else (item.project or "", item.user or "", item.agent or "")


class Place(NamedTuple):
    line: int
    file: str


class ReadMemory(NamedTuple):
    """A record that may be stored, and where it came from."""

    place: Place
    superseded_by: str | None
    prepared: Prepared


class Reader:
    """Makes records ready to be stored, by the guards and the policy that were in force when the import began.

    Storing looks at the policy again, since a curve can be drawn anew; what a guard let pass has passed.
    """

    def __init__(self, preparation: Preparation) -> None:
        self.preparation = preparation
        self.scopes: dict[ScopeNames, ScopeNames] = {}  # of a file's many records few differ

    def chunks(self, items: Iterator[Item]) -> Generator[list[ReadMemory | Problem]]:
        for window in _by_scope(items):
            for start in range(0, len(window), CHUNK):
                now = clock.now()
                yield [self._read(item, now) for item in window[start : start + CHUNK]]

    def _read(self, item: Item, now: datetime) -> ReadMemory | Problem:
        """The record in the form that is stored, or why the hub's rules refuse it."""
        if isinstance(item, Problem):
            return item
        try:
            prepared = self.preparation.prepare(self._draft(item), now)
        except errors.HubError as error:
            return Problem(item.line, error.detail, item.file)
        return ReadMemory(Place(item.line, item.file), item.superseded_by, prepared)

    def _draft(self, record: MemoryRecord) -> MemoryDraft:
        named = ScopeNames(record.agent, record.user, record.project)
        scope = self.scopes.get(named)
        if scope is None:
            scope = self.scopes[named] = scope_of_files(self.preparation.binding, named)
        return MemoryDraft(
            content=record.content,
            scope=scope,
            session=record.session,
            event=record.event,
            subject=record.subject,
            kind=record.kind or "semantic",
            importance=DEFAULT_IMPORTANCE if record.importance is None else record.importance,
            tags=record.tags,
            path=record.path,
            pinned=record.pinned,
            valid_from=record.valid_from,
            valid_until=record.valid_until,
            expires_at=record.expires_at,
            created_at=record.created_at,
            # A file can say that a memory is not to be trusted, but not that it is: that is for the guards.
            trust=record.trust if record.trust in ("unreviewed", "quarantined") else None,
            public_id=record.public_id,
            last_accessed_at=record.last_accessed_at,
            access_count=record.access_count,
            content_changed_at=record.content_changed_at,
            metadata_changed_at=record.metadata_changed_at,
            state="active" if record.state in (None, "fading") else record.state,
            origin=self._origin(record, scope if not named else None),
        )

    def _origin(self, record: MemoryRecord, assigned: ScopeNames | None) -> dict[str, Any] | None:
        if record.origin is None:
            return None
        origin = dict(record.origin)
        if (
            self.preparation.settings.redact_secrets
            and guards.redact_secrets(json.dumps(origin, ensure_ascii=False))[1]
        ):
            origin = _without_secrets(origin)
        return {**origin, "assigned_scope": assigned.named()} if assigned else origin


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return guards.redact_secrets(value)[0]
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return value
