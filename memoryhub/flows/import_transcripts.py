"""Transcripts into two rooms at once: usage into the ledger, conversation into the session tree.

Everything is idempotent, so a killed import is simply run again. A file's read position is stored after what was read
up to it; an unchanged file costs one `stat`, a grown one only its new lines, a rewritten one is read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from memoryhub.prompt_cache.domain.sightings import Sighting
from memoryhub.prompt_cache.domain.transcripts import (
    MAIN_AGENT,
    FileMemory,
    LineError,
    TranscriptSource,
    UsageReader,
    parse_line,
)
from memoryhub.prompt_cache.models import TranscriptFile
from memoryhub.prompt_cache.services.doctor import leave_diagnosis
from memoryhub.prompt_cache.services.transcript_files import known_positions, path_sha256, save_positions
from memoryhub.prompt_cache.services.usage import record_usage
from memoryhub.prompt_cache.transcript_reader import (
    LONGEST_LINE_BYTES,
    FoundFile,
    agent_type_of,
    find_transcripts,
    open_transcript,
    read_lines,
    sample_sha256,
)
from memoryhub.session_cache.domain.transcript_events import ImportedEvent, event_of_line
from memoryhub.session_cache.services.imports import import_events
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.services import ensure_session

Progress = Callable[[int, int], None]  # bytes done, bytes in all

SIGHTINGS_PER_WRITE = 10_000
EVENT_BYTES_PER_WRITE = 16 * 1024 * 1024
EVENTS_PER_WRITE = 4_000
MOST_LISTED_ERRORS = 1_000
_PROGRESS_EVERY_LINES = 500


@dataclass(slots=True)
class ImportResult:
    """What an import found and did. `errors` lists the first thousand lines that could not be read."""

    files: int = 0
    unchanged_files: int = 0
    lines: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    events: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    error_count: int = 0
    readable: bool = False

    def note_error(self, path: str, line: int, reason: str) -> None:
        self.error_count += 1
        if len(self.errors) < MOST_LISTED_ERRORS:
            self.errors.append({"file": path, "line": line, "reason": reason})

    def as_json(self) -> dict[str, Any]:
        return {
            "files": self.files,
            "unchanged_files": self.unchanged_files,
            "lines": self.lines,
            "records": {"created": self.created, "updated": self.updated, "unchanged": self.unchanged},
            "events": self.events,
            "errors": self.errors,
            "error_count": self.error_count,
        }


def import_transcripts(
    *,
    workspace: Workspace,
    paths: Iterable[str | Path],
    usage_only: bool = False,
    remember: bool = True,
    shown_below: str = "",
    progress: Progress | None = None,
) -> ImportResult:
    """Import files and folders of transcripts.

    `remember=False` keeps no read positions (for uploads, whose paths are gone afterwards), and `shown_below` is the folder
    that such paths are named relative to.
    """
    run = _Run(workspace, usage_only=usage_only, remember=remember, shown_below=shown_below, progress=progress)
    run.read_all(paths)
    return run.result


def pending_bytes(*, workspace: Workspace, paths: Iterable[str | Path]) -> int:
    """How much an import of these paths would have to read."""
    files, _ = find_transcripts(paths)
    known = known_positions(workspace=workspace, files=files)
    return sum(_bytes_to_read(file, known.get(file.path)) for file in files)


def _bytes_to_read(file: FoundFile, known: TranscriptFile | None) -> int:
    if known is None or known.offset > file.size:
        return file.size
    if (known.size, known.mtime_ns) == (file.size, file.mtime_ns):
        return 0
    return file.size - known.offset


@dataclass(slots=True)
class _SessionEvents:
    """Events of one session that wait to be written."""

    project: str
    events: list[ImportedEvent] = field(default_factory=list)


class _Run:
    """One import: reads file after file and writes in batches that span files."""

    def __init__(
        self, workspace: Workspace, *, usage_only: bool, remember: bool, shown_below: str, progress: Progress | None
    ) -> None:
        self.workspace = workspace
        self.usage_only = usage_only
        self.remember = remember
        self.shown_below = shown_below
        self.progress = progress
        self.result = ImportResult()
        self.sightings: list[Sighting] = []
        self.events: dict[str, _SessionEvents] = {}
        self.event_count = self.event_bytes = 0
        self.positions: list[TranscriptFile] = []
        self.bytes_done = self.bytes_total = 0
        self.seen: dict[str, str] = {}

    def read_all(self, paths: Iterable[str | Path]) -> None:
        files, unreadable = find_transcripts(paths)
        for one in unreadable:
            self.result.note_error(one.path.encode("utf-8", "replace").decode(), 0, one.reason)
        known = known_positions(workspace=self.workspace, files=files) if self.remember else {}
        self.result.files = len(files)
        self.bytes_total = sum(file.size for file in files)
        for file in files:
            self._read_file(file, known.get(file.path))
        self._write()
        if self.result.created or self.result.updated:
            leave_diagnosis(workspace=self.workspace)
        self._show_progress()

    def _read_file(self, file: FoundFile, known: TranscriptFile | None) -> None:
        start = self.bytes_done
        if known is not None and self._is_unchanged(file, known):
            self.result.unchanged_files += 1
            self.result.readable = True
        else:
            try:
                with open_transcript(file.path) as opened:
                    self._read_opened(file, known, opened)
            except OSError as error:
                self.result.note_error(self._shown(file), 0, error.strerror or "can't be read")
        self.bytes_done = start + file.size

    def _is_unchanged(self, file: FoundFile, known: TranscriptFile) -> bool:
        same = (known.size, known.mtime_ns) == (file.size, file.mtime_ns)
        return same and (known.with_events or self.usage_only)

    def _read_opened(self, file: FoundFile, known: TranscriptFile | None, opened: BinaryIO) -> None:
        known = known if known is not None and self._goes_on(file, known, opened) else None
        offset, number = (known.offset, known.line_count) if known else (0, 0)
        source = TranscriptSource(self._shown(file), file.stem, _agent_of(file))
        reader = UsageReader(source, FileMemory.from_json(known.memory) if known else FileMemory())
        self.result.readable = self.result.readable or file.size == 0
        start = self.bytes_done
        for line in read_lines(opened, offset=offset, number=number):
            self.result.lines += 1
            read = self._read_line(reader, line.number, line.data, line.is_finished)
            if not read and not line.is_finished:
                break  # still being written: it is read again once the file has grown
            offset, number = line.end, line.number
            if self.result.lines % _PROGRESS_EVERY_LINES == 0:
                self.bytes_done = start + offset
                self._show_progress()
        self.sightings.extend(reader.finish())
        self.positions.append(self._position(file, opened, offset, number, reader.memory))

    def _goes_on(self, file: FoundFile, known: TranscriptFile, opened: BinaryIO) -> bool:
        """Whether the file still begins with what was read. A file that changed without growing was rewritten."""
        if file.size <= known.size and (file.size, file.mtime_ns) != (known.size, known.mtime_ns):
            return False
        if not self.usage_only and not known.with_events:
            return False
        return sample_sha256(opened, known.offset) == known.sample_sha256

    def _read_line(self, reader: UsageReader, number: int, data: bytes | None, is_finished: bool) -> bool:
        """Read one line into what waits to be written; False where it can't be read."""
        try:
            if data is None:
                raise LineError(f"is longer than {LONGEST_LINE_BYTES // 1024 // 1024} MiB")
            entry = parse_line(data)
            sightings = reader.read(entry)
        except LineError as error:
            reason = str(error) if is_finished else f"{error}; the file ends within it"
            self.result.note_error(reader.source.path, number, reason)
            return False
        self.result.readable = True
        self.sightings.extend(sightings)
        if not self.usage_only:
            self._hold_event(reader.memory, reader.source, entry, len(data))
        if self._is_full():
            self._write()
        return True

    def _hold_event(self, memory: FileMemory, source: TranscriptSource, entry: dict[str, Any], size: int) -> None:
        event = event_of_line(entry)
        if event is None:
            return
        waiting = self.events.setdefault((memory.session or source.stem)[:200], _SessionEvents(memory.cwd[:500]))
        waiting.events.append(event)
        self.event_count += 1
        self.event_bytes += size

    def _is_full(self) -> bool:
        return (
            len(self.sightings) >= SIGHTINGS_PER_WRITE
            or self.event_count >= EVENTS_PER_WRITE
            or self.event_bytes >= EVENT_BYTES_PER_WRITE
        )

    def _write(self) -> None:
        """Write what was read, then how far it was read: a kill between the two costs a repeat, never a loss."""
        self._write_usage()
        for sid, waiting in self.events.items():
            session = self._session(sid, waiting)
            report = import_events(workspace=self.workspace, session=session, events=waiting.events)
            self.result.events += report.created
        self.events, self.event_count, self.event_bytes = {}, 0, 0
        if self.remember and self.positions:
            save_positions(workspace=self.workspace, positions=self.positions)
        self.positions = []

    def _session(self, sid: str, waiting: _SessionEvents) -> Session:
        """The session, described where nobody has described it yet: what somebody declared is not overwritten."""
        session = ensure_session(workspace=self.workspace, sid=sid, started_at=waiting.events[0].occurred_at)
        project = waiting.project if waiting.project and not session.project else None
        agent = MAIN_AGENT if session.agent_id is None else None
        if project or agent:
            ensure_session(workspace=self.workspace, sid=sid, project=project, agent=agent)
        return session

    def _write_usage(self) -> None:
        if not self.sightings:
            return
        recorded = record_usage(workspace=self.workspace, sightings=self.sightings)
        self.sightings = []
        for message_id, status in recorded.statuses.items():
            self._count(message_id, status)

    def _count(self, message_id: str, status: str) -> None:
        """Count a response once per import, however many batches its lines fall into."""
        order = ("unchanged", "updated", "created")
        before = self.seen.get(message_id)
        if before is None or order.index(status) > order.index(before):
            self.seen[message_id] = status
            setattr(self.result, status, getattr(self.result, status) + 1)
            if before is not None:
                setattr(self.result, before, getattr(self.result, before) - 1)

    def _position(
        self, file: FoundFile, opened: BinaryIO, offset: int, number: int, memory: FileMemory
    ) -> TranscriptFile:
        return TranscriptFile(
            path_sha256=path_sha256(file.path),
            path=file.shown,
            size=file.size,
            mtime_ns=file.mtime_ns,
            offset=offset,
            line_count=number,
            sample_sha256=sample_sha256(opened, offset) if self.remember else "",
            with_events=not self.usage_only,
            memory=memory.to_json(),
        )

    def _shown(self, file: FoundFile) -> str:
        if self.shown_below and file.shown.startswith(self.shown_below):
            return file.shown[len(self.shown_below) :].lstrip("/")
        return file.shown

    def _show_progress(self) -> None:
        if self.progress is not None:
            self.progress(self.bytes_done, self.bytes_total)


def _agent_of(file: FoundFile) -> str:
    return agent_type_of(file.path) if file.stem.startswith("agent-") else ""
