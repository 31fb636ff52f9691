"""Memories from a file of another system into long-term memory: streamed, in chunks, as one change set.

Each chunk is a transaction of its own, so other writers wait for a moment at the most, and a file of any size takes
the memory of one chunk. Ids, paths and texts that stand already are found again, so an import that was killed can
simply be run again: what came in the first time comes back as a duplicate.
"""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from django.db import IntegrityError, transaction
from django.db.models import F

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set
from memoryhub.common import clock, errors
from memoryhub.common.elsewhere import has_cores, read_elsewhere
from memoryhub.flows.reading_memories import Item, Place, Reader, ReadMemory, read_chunks
from memoryhub.interchange import markdown
from memoryhub.interchange.formats import AUTO, FORMATS, UnknownFormat, open_format
from memoryhub.interchange.record import Problem
from memoryhub.long_term_memory.services.finding import find_memories
from memoryhub.long_term_memory.services.places import parents_of
from memoryhub.long_term_memory.services.preparing import Preparation, Prepared
from memoryhub.long_term_memory.services.remembering import preview_prepared, remember_prepared, supersede_row
from memoryhub.long_term_memory.services.writer import ClosesCircle, MemoryDraft, Remembered, Writer

LONG_FILE = 8 * 1024 * 1024  # bytes from which a process of its own is worth the second that its start takes
TRIES = 5  # of one chunk while others write the same
MAX_LISTED = 10_000  # problems and conflicts that a result names one by one; the rest is counted

Progress = Callable[[int], None]


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
    preparation = Preparation.for_import(writer)
    if has_cores() and _size_of(stream) >= LONG_FILE:
        chunks = read_elsewhere(read_chunks, whole, found.name, preparation)
    else:
        chunks = read_chunks(whole, found.name, preparation)
    return _import_chunks(writer, chunks, found.name, dry_run=dry_run, progress=progress)


def _size_of(stream: BinaryIO) -> int:
    """The bytes of a file; 0 for what is none, such as a pipe."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, AttributeError):
        return 0


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
    chunks = Reader(Preparation.for_import(writer)).chunks(iter(items))
    return _import_chunks(writer, chunks, format, dry_run=dry_run, progress=progress)


def _import_chunks(
    writer: Writer,
    chunks: Generator[list[ReadMemory | Problem]],
    format: str,
    *,
    dry_run: bool,
    progress: Progress | None,
) -> ImportResult:
    result = ImportResult(format=format, dry_run=dry_run)
    load = _Load(writer, result)
    read = 0
    with closing(chunks):
        for chunk in chunks:
            load.take(chunk)
            read += len(chunk)
            if progress is not None:
                progress(read)
    load.finish()
    return result


class _Load:
    """One import on its way: what stands already is found, and the rest stored."""

    def __init__(self, writer: Writer, result: ImportResult) -> None:
        self.writer = writer
        self.result = result
        self.superseded: list[tuple[Place, str, str]] = []
        self.foreseen = _Foreseen()

    def take(self, chunk: list[ReadMemory | Problem]) -> None:
        """Store one chunk; what can't be stored is named, and the others stay."""
        kept = []
        for item in chunk:
            if isinstance(item, Problem):
                self.result.skip(item.line, item.reason, item.file)
            else:
                kept.append(item)
        while kept:
            outcomes = self._store([item.prepared for item in kept])
            kept = kept[self._count_until_moot(kept, outcomes) :]

    def _count_until_moot(self, kept: list[ReadMemory], outcomes: list[Remembered]) -> int:
        """Count what became of the records, and return of how many.

        A dry run looks at each chunk as if it came first. Where an earlier chunk makes a record a double, it is not there
        for those behind it that would have met it: these are looked at again.
        """
        for place, (item, outcome) in enumerate(zip(kept, outcomes, strict=True), start=1):
            counted = self._count(item, outcome)
            draft, behind = item.prepared.draft, kept[place:]
            if counted is not outcome and any(_can_meet(draft, other.prepared.draft) for other in behind):
                return place
        return len(kept)

    def _store(self, prepared: list[Prepared]) -> list[Remembered]:
        if self.result.dry_run:
            return preview_prepared(writer=self.writer, prepared=prepared)
        for _ in range(TRIES - 1):
            try:
                return self._store_chunk(prepared)
            except IntegrityError:
                # Somebody stored one of these texts or paths at the same moment: look again, and find theirs.
                continue
        return self._store_chunk(prepared)

    def _store_chunk(self, prepared: list[Prepared]) -> list[Remembered]:
        with transaction.atomic():
            change_set = self.result.change_set or self._open_change_set()
            joining = replace(self.writer, change_set=change_set)
            outcomes = remember_prepared(writer=joining, prepared=prepared, imported=True)
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
        """Put newer memories in the place of older ones, now that both are here; name what was left in the file's order."""
        for place, old_id, new_id in self.superseded:
            try:
                with transaction.atomic():
                    found = {memory.public_id: memory for memory in find_memories(self.writer, [old_id, new_id])}
                    if old_id in found and new_id in found and found[old_id].superseded_by_id is None:
                        old, new = found[old_id], found[new_id]
                        supersede_row(self.writer, old, new, clock.now(), self.result.change_set)
            except ClosesCircle:
                self.result.skip(place.line, "superseded_by closes a circle; the memory stays current", place.file)
        for named in (self.result.skipped, self.result.conflict_items):
            named.sort(key=lambda item: (item.get("file", ""), item["line"]))

    def _count(self, item: ReadMemory, outcome: Remembered) -> Remembered:
        """Count one outcome, and return it as it stands after all that came before."""
        result, place = self.result, item.place
        if result.dry_run and outcome.outcome != "recalled":
            outcome = self.foreseen.judge(item.prepared.draft, outcome)
        if outcome.outcome == "recalled":
            result.skip(place.line, outcome.detail or "this text came from a recall", place.file)
        elif outcome.outcome == "conflict":
            result.conflicts += 1
            if len(result.conflict_items) < MAX_LISTED:
                result.conflict_items.append({"line": place.line, "id": outcome.id, "reason": outcome.detail})
        elif outcome.outcome == "duplicate":
            result.deduplicated += 1
        else:
            result.created += 1
            if item.superseded_by and not result.dry_run:
                self.superseded.append((place, outcome.id, item.superseded_by))
        return outcome


class _Foreseen:
    """What a dry run would have stored so far: later chunks can't find it in the database. Hashes, to stay small."""

    def __init__(self) -> None:
        self.ids: dict[int, int] = {}
        self.paths: dict[int, int] = {}
        self.directories: set[int] = set()
        self.texts: set[int] = set()

    def judge(self, draft: MemoryDraft, outcome: Remembered) -> Remembered:
        """What becomes of a draft after those before it, given what the database alone says; ids come first."""
        text, public_id = hash(draft.content), hash(draft.public_id)
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
        told = hash((draft.scope, draft.subject, draft.content, draft.valid_from, draft.valid_until))
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


def format_names() -> list[str]:
    """The names a door offers to choose from."""
    return [AUTO, *FORMATS]
