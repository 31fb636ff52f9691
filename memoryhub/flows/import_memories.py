"""Memories from a file of another system into long-term memory: streamed, in chunks, as one change set.

Each chunk is a transaction of its own, so other writers wait for a moment at the most, and a file of any size takes
the memory of one chunk. Ids, paths and texts that stand already are found again, so an import that was killed can
simply be run again: what came in the first time comes back as a duplicate.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import F

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set
from memoryhub.common import clock, errors
from memoryhub.interchange import markdown
from memoryhub.interchange.formats import AUTO, FORMATS, UnknownFormat, open_format
from memoryhub.interchange.record import MemoryRecord, Problem
from memoryhub.long_term_memory.domain import guards
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.queries.guards import get_guard_settings
from memoryhub.long_term_memory.services.files import scope_of_files
from memoryhub.long_term_memory.services.finding import find_memories
from memoryhub.long_term_memory.services.places import parents_of
from memoryhub.long_term_memory.services.remembering import preview_remember, remember, supersede_row
from memoryhub.long_term_memory.services.writer import ClosesCircle, MemoryDraft, Remembered, Writer

CHUNK = 500
TRIES = 5  # of one chunk while others write the same
MAX_LISTED = 10_000  # problems and conflicts that a result names one by one; the rest is counted
DEFAULT_IMPORTANCE = 0.5

Progress = Callable[[int], None]
Item = MemoryRecord | Problem


class UnreadableFile(errors.Invalid):
    slug = "unreadable-file"
    title = "This file can't be imported"


@dataclass
class ImportResult:
    """What an import did, or in a dry run would do."""

    format: str
    dry_run: bool
    created: int = 0
    deduplicated: int = 0
    conflicts: int = 0
    skipped_count: int = 0
    skipped: list[dict[str, Any]] = field(default_factory=list)
    conflict_items: list[dict[str, Any]] = field(default_factory=list)
    change_set: ChangeSet | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "dry_run": self.dry_run,
            "created": self.created,
            "deduplicated": self.deduplicated,
            "conflicts": self.conflicts,
            "conflict_items": self.conflict_items,
            "skipped": self.skipped,
            "skipped_count": self.skipped_count,
            "change_set": self.change_set.public_id if self.change_set else None,
        }

    def skip(self, line: int, reason: str, file: str = "") -> None:
        self.skipped_count += 1
        if len(self.skipped) < MAX_LISTED:
            self.skipped.append({"line": line, "reason": reason, **({"file": file} if file else {})})


def import_stream(
    *,
    writer: Writer,
    stream: BinaryIO,
    format: str = AUTO,
    file_name: str = "",
    dry_run: bool = False,
    progress: Progress | None = None,
) -> ImportResult:
    """Import one file. What can't be read is skipped with its line and a reason; `progress` hears of each chunk."""
    try:
        found, whole = open_format(stream, name=format, file_name=file_name)
    except UnknownFormat as error:
        raise UnreadableFile(f"{error}.") from error
    return import_items(writer=writer, items=found.read(whole), format=found.name, dry_run=dry_run, progress=progress)


def import_folder(
    *, writer: Writer, folder: Path, dry_run: bool = False, progress: Progress | None = None
) -> ImportResult:
    """Import a folder of notes; a note's place in the folder is its path."""
    items = read_folder(folder)
    return import_items(writer=writer, items=items, format=markdown.NAME, dry_run=dry_run, progress=progress)


def read_folder(folder: Path) -> Iterator[Item]:
    """Every note below a folder, in order of path. Hidden files, and links that lead out of the folder, are left."""
    root = folder.resolve()
    for file in sorted(root.rglob("*")):
        place = file.relative_to(root)
        if file.suffix.lower() not in markdown.SUFFIXES or any(part.startswith(".") for part in place.parts):
            continue
        if not file.is_file() or not file.resolve().is_relative_to(root):
            continue
        with file.open("rb") as stream:
            for item in markdown.read_file(stream, path=f"/{place.as_posix()}"):
                yield replace(item, file=place.as_posix())


def import_items(
    *, writer: Writer, items: Iterable[Item], format: str, dry_run: bool = False, progress: Progress | None = None
) -> ImportResult:
    """Import what a format's reader yields."""
    result = ImportResult(format=format, dry_run=dry_run)
    load = _Load(writer, result)
    waiting = iter(items)
    read = 0
    while chunk := list(islice(waiting, CHUNK)):
        load.take(chunk)
        read += len(chunk)
        if progress is not None:
            progress(read)
    load.finish()
    return result


class _Place(NamedTuple):
    line: int
    file: str


class _Load:
    """One import on its way."""

    def __init__(self, writer: Writer, result: ImportResult) -> None:
        self.writer = writer
        self.result = result
        self.redacts = get_guard_settings(writer.workspace).redact_secrets
        self.scopes: dict[ScopeNames, ScopeNames] = {}  # of a file's many records few differ
        self.superseded: list[tuple[_Place, str, str]] = []
        self.foreseen = _Foreseen(redacts=self.redacts)

    def take(self, chunk: list[Item]) -> None:
        """Store one chunk; a record that breaks a rule of the hub is skipped, and the others stay."""
        kept: list[tuple[MemoryRecord, MemoryDraft]] = []
        for item in chunk:
            if isinstance(item, Problem):
                self.result.skip(item.line, item.reason, item.file)
                continue
            try:
                kept.append((item, self._draft(item)))
            except errors.HubError as error:
                self.result.skip(item.line, error.detail, item.file)
        while kept:
            try:
                outcomes = self._store([draft for _, draft in kept])
            except (errors.Invalid, errors.TooLarge) as error:
                record, _ = kept.pop(_place_of(error))
                self.result.skip(record.line, error.detail, record.file)
                continue
            kept = kept[self._count_until_moot(kept, outcomes) :]

    def _count_until_moot(self, kept: list[tuple[MemoryRecord, MemoryDraft]], outcomes: list[Remembered]) -> int:
        """Count what became of the records, and return of how many.

        A dry run looks at each chunk as if it came first. Where an earlier chunk makes a record a double, it is not there
        for those behind it that would have met it: these are looked at again.
        """
        for place, ((record, draft), outcome) in enumerate(zip(kept, outcomes, strict=True), start=1):
            counted = self._count(record, draft, outcome)
            behind = (other for _, other in kept[place:])
            if counted is not outcome and any(_can_meet(draft, other) for other in behind):
                return place
        return len(kept)

    def _store(self, drafts: list[MemoryDraft]) -> list[Remembered]:
        if self.result.dry_run:
            return preview_remember(writer=self.writer, drafts=drafts)
        for _ in range(TRIES - 1):
            try:
                return self._store_chunk(drafts)
            except IntegrityError:
                # Somebody stored one of these texts or paths at the same moment: look again, and find theirs.
                continue
        return self._store_chunk(drafts)

    def _store_chunk(self, drafts: list[MemoryDraft]) -> list[Remembered]:
        with transaction.atomic():
            change_set = self.result.change_set or self._open_change_set()
            joining = replace(self.writer, change_set=change_set)
            outcomes = remember(writer=joining, drafts=drafts, embed=False, imported=True)
            created = sum(outcome.created for outcome in outcomes)
            if created:
                ChangeSet.objects.filter(pk=change_set.pk).update(subject_count=F("subject_count") + created)
            elif self.result.change_set is None:
                change_set.delete()
        if created:
            self.result.change_set = change_set
        return outcomes

    def _open_change_set(self) -> ChangeSet:
        writer = self.writer
        return open_change_set(
            workspace=writer.workspace, actor=writer.actor, action="import", reason=writer.reason, door=writer.door
        )

    def finish(self) -> None:
        """Put newer memories in the place of older ones, now that both are here."""
        for record, old_id, new_id in self.superseded:
            try:
                with transaction.atomic():
                    found = {memory.public_id: memory for memory in find_memories(self.writer, [old_id, new_id])}
                    if old_id in found and new_id in found and found[old_id].superseded_by_id is None:
                        old, new = found[old_id], found[new_id]
                        supersede_row(self.writer, old, new, clock.now(), self.result.change_set)
            except ClosesCircle:
                self.result.skip(record.line, "superseded_by closes a circle; the memory stays current", record.file)

    def _draft(self, record: MemoryRecord) -> MemoryDraft:
        named = ScopeNames(record.agent, record.user, record.project)
        scope = self.scopes.get(named)
        if scope is None:
            scope = self.scopes[named] = scope_of_files(self.writer, named)
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
        if self.redacts and guards.redact_secrets(json.dumps(origin, ensure_ascii=False))[1]:
            origin = _without_secrets(origin)
        return {**origin, "assigned_scope": assigned.named()} if assigned else origin

    def _count(self, record: MemoryRecord, draft: MemoryDraft, outcome: Remembered) -> Remembered:
        """Count one outcome, and return it as it stands after all that came before."""
        result = self.result
        if result.dry_run and outcome.outcome != "recalled":
            outcome = self.foreseen.judge(draft, outcome)
        if outcome.outcome == "recalled":
            result.skip(record.line, outcome.detail or "this text came from a recall", record.file)
        elif outcome.outcome == "conflict":
            result.conflicts += 1
            if len(result.conflict_items) < MAX_LISTED:
                result.conflict_items.append({"line": record.line, "id": outcome.id, "reason": outcome.detail})
        elif outcome.outcome == "duplicate":
            result.deduplicated += 1
        else:
            result.created += 1
            if record.superseded_by and not result.dry_run:
                self.superseded.append((_Place(record.line, record.file), outcome.id, record.superseded_by))
        return outcome


class _Foreseen:
    """What a dry run would have stored so far: later chunks can't find it in the database. Hashes, to stay small."""

    def __init__(self, *, redacts: bool) -> None:
        self.redacts = redacts
        self.ids: dict[int, int] = {}
        self.paths: dict[int, int] = {}
        self.directories: set[int] = set()
        self.texts: set[int] = set()

    def judge(self, draft: MemoryDraft, outcome: Remembered) -> Remembered:
        """What becomes of a draft after those before it, given what the database alone says; ids come first."""
        content = guards.redact_secrets(draft.content)[0] if self.redacts else draft.content
        text, public_id = hash(content), hash(draft.public_id)
        if draft.public_id and public_id in self.ids:
            return _again(draft, "id", same=self.ids[public_id] == text)
        if outcome.outcome != "created":
            return outcome
        place, above = hash((draft.scope, draft.path)), []
        if draft.path:
            above = [hash((draft.scope, parent)) for parent in parents_of(draft.path)]
            if place in self.paths:
                return _again(draft, "path", same=self.paths[place] == text)
            if draft.state != "forgotten" and (place in self.directories or not self.paths.keys().isdisjoint(above)):
                return _again(draft, "path", same=False)
        told = hash((draft.scope, draft.subject, content, draft.valid_from, draft.valid_until))
        if not draft.path and draft.state != "forgotten" and told in self.texts:
            return _again(draft, "text", same=True)
        if draft.public_id:
            self.ids[public_id] = text
        if draft.path and draft.state != "forgotten":
            self.paths[place] = text
            self.directories.update(above)
        elif draft.state != "forgotten":
            self.texts.add(told)
        return outcome


def _can_meet(draft: MemoryDraft, other: MemoryDraft) -> bool:
    """Whether one of them can be the other's double, or in its way."""
    if draft.public_id and draft.public_id == other.public_id:
        return True
    if draft.scope != other.scope:
        return False
    if not draft.path or not other.path:
        return draft.content == other.content
    return draft.path == other.path or draft.path in parents_of(other.path) or other.path in parents_of(draft.path)


def _again(draft: MemoryDraft, what: str, *, same: bool) -> Remembered:
    if same:
        return Remembered(outcome="duplicate", id=draft.public_id or "")
    return Remembered(outcome="conflict", id=draft.public_id or "", detail=f"the {what} is taken by another text")


def _place_of(error: errors.HubError) -> int:
    """Which draft of the chunk an error is about."""
    field_name = str(error.errors[0]["field"]) if error.errors else ""
    if not field_name.startswith("items."):
        raise error
    return int(field_name.split(".")[1])


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return guards.redact_secrets(value)[0]
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_secrets(item) for key, item in value.items()}
    return value


def format_names() -> list[str]:
    """The names a door offers to choose from."""
    return [AUTO, *FORMATS]
