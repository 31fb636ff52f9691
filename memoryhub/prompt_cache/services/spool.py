"""Usage on its way into the ledger: noted in a file at once, recorded by a thread, never by the request that caused it.

A note is one line appended to this process's file in DATA_DIR/spool, so a killed process loses nothing it knew. The thread
records what is noted within a moment, waits out a locked or absent database, and empties the file when all is in. Files of
processes that are gone are taken over: their owner held a lock on them. What can't be recorded at all is counted, and the
count is shown.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.db import DatabaseError, connection

from memoryhub.common import clock, errors, ids, stopping
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.services.doctor import SentRequest
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace

logger = logging.getLogger(__name__)
BATCH = 100
SWITCH_SECONDS = 0.001  # how long this thread may hold Python's lock while an answer waits for it; 5 ms is the default
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 5.0
ORPHANS_EVERY_SECONDS = 30.0
# Notes are gathered for so long: one batch costs little more than one record, and while it is written, Python's lock makes
# other threads wait, which should not be felt by every answer.
GATHER_SECONDS = 0.5
MOST_WAITING = 20_000  # notes held in memory; more wait in the file alone
MOST_BODY_BYTES = 64 * 1024 * 1024  # request bodies held for the doctor; more are let go, their usage is not
COMPACT_ABOVE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Note:
    """One response, as much as is known of it. `body` is the request's raw body, which is never written to the file."""

    workspace_id: int
    report: UsageReport
    body: bytes | None = None
    answered_no_change: bool = False
    betas: str = ""  # the header `anthropic-beta`

    def line(self) -> bytes:
        return orjson.dumps({"workspace": self.workspace_id, "report": self.report}) + b"\n"


def note_of_line(line: bytes) -> Note | None:
    """Return the note of a spooled line; None for a line that was cut by a crash."""
    try:
        data = orjson.loads(line)
        values = {
            name: data["report"][name] for name in (one.name for one in fields(UsageReport)) if name in data["report"]
        }
        for name in ("started_at", "first_byte_at", "ended_at"):
            values[name] = datetime.fromisoformat(values[name]) if values.get(name) else None
        return Note(int(data["workspace"]), UsageReport(**values))
    except (ValueError, KeyError, TypeError):
        return None


@dataclass
class Spool:
    """This process's notes. `note` is for requests, `work` for the thread."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _wake: threading.Event = field(default_factory=threading.Event)
    _open: dict[str, bytes] = field(default_factory=dict)  # responses that still run: their last line
    _waiting: dict[int, tuple[Note, bytes]] = field(default_factory=dict)
    _next: int = 0
    _body_bytes: int = 0
    _file: int | None = None
    _path: Path | None = None
    _only_in_file: bool = False

    def note_running(self, note: Note) -> None:
        """Keep what is known of a response that still runs, in case this process does not see its end."""
        line = note.line()
        with self._lock:
            self._open[_key(note)] = line
            self._append(line)

    def note(self, note: Note) -> None:
        """Keep a response that has ended; it will be in the ledger in a moment."""
        line = note.line()
        with self._lock:
            self._open.pop(_key(note), None)
            written = self._append(line)
            if len(self._waiting) >= MOST_WAITING:
                self._only_in_file = self._only_in_file or written
                if not written:
                    count_loss(self.folder, 1)
                return
            if note.body is not None and self._body_bytes + len(note.body) > MOST_BODY_BYTES:
                note = Note(note.workspace_id, note.report)
            self._body_bytes += len(note.body or b"")
            self._waiting[self._next] = (note, line)
            self._next += 1
        self._wake.set()

    def work(self) -> int:
        """Record what waits, a batch at a time; return how many are left. Raises DatabaseError while the ledger is locked."""
        while batch := self._first_waiting():
            record_notes([note for _, note in batch], self.folder)
            self._done(key for key, _ in batch)
        self._read_back()
        return len(self._waiting)

    def wait(self, seconds: float) -> bool:
        """Sleep until something is noted, or for so long; tell whether something was."""
        noted = self._wake.wait(seconds)
        self._wake.clear()
        return noted

    def _first_waiting(self) -> list[tuple[int, Note]]:
        with self._lock:
            return [(key, note) for key, (note, _) in islice(self._waiting.items(), BATCH)]

    def _done(self, keys: Iterable[int]) -> None:
        with self._lock:
            for key in keys:
                note, _ = self._waiting.pop(key)
                self._body_bytes -= len(note.body or b"")
            if self._file is None or self._only_in_file:
                return
            if not self._waiting or os.fstat(self._file).st_size > COMPACT_ABOVE_BYTES:
                self._rewrite()

    def _rewrite(self) -> None:
        """Leave in the file only what is not in the ledger yet. A crash in between repeats notes, which changes nothing."""
        assert self._file is not None
        kept = b"".join([*self._open.values(), *(line for _, line in self._waiting.values())])
        os.ftruncate(self._file, 0)
        if kept:
            with suppress(OSError):
                os.write(self._file, kept)

    def _read_back(self) -> None:
        """Record notes that found no room in memory."""
        if not self._only_in_file or self._path is None:
            return
        with self._lock:
            lines = self._path.read_bytes().splitlines()
        running = {line.rstrip() for line in self._open.values()}
        notes = [note for line in lines if line not in running and (note := note_of_line(line))]
        for start in range(0, len(notes), BATCH):
            record_notes(notes[start : start + BATCH], self.folder)
        with self._lock:
            self._only_in_file = False
            if not self._waiting:
                self._rewrite()

    def _append(self, line: bytes) -> bool:
        try:
            if self._file is None:
                self._file, self._path = _create_owned_file(self.folder)
            os.write(self._file, line)
        except OSError as error:
            logger.warning("could not note usage in %s: %s", self.folder, error)
            return False
        return True


def _key(note: Note) -> str:
    return f"{note.workspace_id}/{note.report.message_id or note.report.request_id}"


def _create_owned_file(folder: Path) -> tuple[int, Path]:
    """Make a file and lock it before it has the name by which others look for files without an owner."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{ids.new_id('usage')}.jsonl"
    draft = folder / f".{path.name}"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    draft.rename(path)
    return handle, path


def record_notes(notes: list[Note], folder: Path) -> None:
    """Put notes into the ledger; one that can't be recorded is counted as lost and does not hold up the others."""
    by_workspace: dict[int, list[Note]] = defaultdict(list)
    for note in notes:
        by_workspace[note.workspace_id].append(note)
    for workspace_id, some in by_workspace.items():
        workspace = Workspace.objects.filter(pk=workspace_id).first()
        if workspace is None:
            continue  # the workspace is gone, and its usage with it
        try:
            _record(workspace, some)
        except errors.HubError:
            for note in some:
                _record_alone(workspace, note, folder)


def _record(workspace: Workspace, notes: list[Note]) -> None:
    reports, requests = [], []
    for note in notes:
        report, request = _read_request(note)
        reports.append(report)
        if request is not None:
            requests.append(request)
    record_reports(workspace=workspace, reports=reports, requests=requests)


def _record_alone(workspace: Workspace, note: Note, folder: Path) -> None:
    try:
        _record(workspace, [note])
    except errors.HubError as error:
        logger.error("a proxied response could not be recorded: %s", error)
        count_loss(folder, 1)


def _read_request(note: Note) -> tuple[UsageReport, SentRequest | None]:
    """Parse the request only here, where nobody waits; it may name the session and the speed."""
    report = note.report
    if note.body is None:
        return report, None
    try:
        body = orjson.loads(note.body)
    except ValueError:
        return report, None
    if not isinstance(body, dict):
        return report, None
    values: dict[str, Any] = {}
    if not report.session:
        values["session"] = session_of_metadata(body.get("metadata"))
    if body.get("speed") == "fast" and "speed" not in report.usage:
        values["usage"] = {**report.usage, "speed": "fast"}
    if note.betas:
        body.setdefault("betas", note.betas.split(","))
    report = replace(report, **values)
    return report, SentRequest(report.message_id or report.request_id, body, note.answered_no_change)


def session_of_metadata(metadata: Any) -> str:
    """Return the session that Claude Code names in `metadata.user_id`: `..._session_<id>`, or JSON with `session_id`."""
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user_id, str):
        return ""
    if user_id.startswith("{"):
        with suppress(ValueError):
            session = orjson.loads(user_id).get("session_id")
            return session[:200] if isinstance(session, str) else ""
    _, mark, session = user_id.rpartition("_session_")
    return session[:200] if mark else ""


# --- Files without an owner ------------------------------------------------------------------------------------------


def take_over_orphans(folder: Path) -> int:
    """Record the notes of processes that are gone; return how many files. A file whose owner lives is locked."""
    taken = 0
    for path in sorted(folder.glob("usage_*.jsonl")):
        with suppress(FileNotFoundError), open(path, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            for batch in _batches(file):
                record_notes(batch, folder)
            path.unlink(missing_ok=True)
            taken += 1
    return taken


def _batches(lines: Iterable[bytes]) -> Iterator[list[Note]]:
    """Later lines about a response replace earlier ones within a batch, and complete them across batches."""
    batch: dict[str, Note] = {}
    for line in lines:
        note = note_of_line(line)
        if note is not None:
            batch[_key(note)] = note
        if len(batch) >= BATCH:
            yield list(batch.values())
            batch = {}
    if batch:
        yield list(batch.values())


# --- Losses ----------------------------------------------------------------------------------------------------------


def count_loss(folder: Path, count: int) -> None:
    """Count records that will never be in the ledger: the size of a file is the count, so processes can add without a lock."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(folder / "lost", "ab") as file:
            file.write(b"." * count)
    except OSError:
        logger.error("%d usage records were lost, and the loss could not be counted", count)


def lost_record_count() -> int:
    """Return how many proxied responses could not be recorded, ever."""
    try:
        return (spool_folder() / "lost").stat().st_size
    except OSError:
        return 0


def waiting_bytes() -> int:
    """Return how much usage waits in files; more than a moment's worth means that the ledger is out of reach."""
    total = 0
    for path in spool_folder().glob("usage_*.jsonl"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def spool_folder() -> Path:
    folder: Path = settings.DATA_DIR / "spool"
    return folder


# --- The thread ------------------------------------------------------------------------------------------------------

_process_spool: Spool | None = None
_starting = threading.Lock()


def get_spool() -> Spool:
    """Return this process's spool; its thread starts with the first use."""
    global _process_spool
    with _starting:
        if _process_spool is None:
            _process_spool = Spool(spool_folder())
            if settings.SPOOL_THREAD:
                threading.Thread(
                    target=_record_forever, args=(_process_spool,), name="record-usage", daemon=True
                ).start()
    return _process_spool


def _record_forever(spool: Spool) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    pause, orphans_at = FIRST_PAUSE_SECONDS, 0.0
    while True:
        try:
            if clock.monotonic() >= orphans_at:
                take_over_orphans(spool.folder)
                orphans_at = clock.monotonic() + ORPHANS_EVERY_SECONDS
            spool.work()
            pause = FIRST_PAUSE_SECONDS
        except DatabaseError as error:
            logger.warning("usage waits for the ledger: %s", error)
            with closing(connection):
                spool.wait(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
            continue
        except Exception:
            logger.exception("recording usage failed; it is tried again")
            spool.wait(LONGEST_PAUSE_SECONDS)
            continue
        connection.close()
        if spool.wait(ORPHANS_EVERY_SECONDS):
            stopping.wait(GATHER_SECONDS)
