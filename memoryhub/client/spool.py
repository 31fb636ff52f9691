"""Sending usage in the background, and keeping it on disk while the hub is down.

Records are sent in batches from one thread. What can't be sent is appended to a file, one JSON line each, and sent when
the hub answers again: by this process, or by the next one that uses the same hub. Sending twice changes nothing, since
the hub counts a response once.
"""

import atexit
import hashlib
import json
import logging
import os
import queue
import threading
import time
from pathlib import Path
from typing import Any

from memoryhub.client.errors import HubError, HubUnreachable
from memoryhub.client.http import Connection

logger = logging.getLogger("memoryhub.client")
BATCH = 100
MAX_WAITING = 10_000  # records in memory; beyond it the oldest go to disk
FIRST_PAUSE_SECONDS = 1.0
LAST_PAUSE_SECONDS = 30.0
EXIT_SECONDS = 3.0  # how long the process may take at its end to get rid of what waits
MAX_SPOOL_BYTES = 256 * 1024 * 1024


class UsageSender:
    """Takes records at once and sends them when it can. Never raises into the agent."""

    def __init__(self, connection: Connection, *, base_url: str, spool_dir: str | os.PathLike[str] | None) -> None:
        self._connection = connection
        folder = Path(spool_dir or os.environ.get("MEMORYHUB_SPOOL_DIR") or Path.home() / ".memoryhub" / "spool")
        name = hashlib.sha256(base_url.encode()).hexdigest()[:16]
        self._file = folder / f"usage-{name}.jsonl"
        self._queue: queue.Queue[dict[str, Any]] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._idle = threading.Event()
        self._idle.set()
        self._closing = threading.Event()
        self._pause = FIRST_PAUSE_SECONDS
        self._retry_at = 0.0
        self._warned = False
        self._adopt_left_behind()
        if self._file.exists():
            self._start()

    def send(self, record: dict[str, Any]) -> None:
        """Hand a record over; returns at once."""
        self._idle.clear()
        self._queue.put(record)
        self._start()

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until everything is sent or on disk, and tell whether it is."""
        return self._idle.wait(timeout_seconds)

    @property
    def spooled(self) -> int:
        """How many records wait on disk."""
        try:
            with self._file.open("rb") as lines:
                return sum(1 for _ in lines)
        except OSError:
            return 0

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="memoryhub-usage", daemon=True)
                self._thread.start()
                atexit.register(self._finish)

    def _finish(self) -> None:
        self._closing.set()
        self.flush(EXIT_SECONDS)
        waiting = self._take(MAX_WAITING, timeout=0)
        if waiting:
            self._spool(waiting)

    def _run(self) -> None:
        while True:
            batch = self._take(BATCH, timeout=0.5)
            may_try = time.monotonic() >= self._retry_at
            if batch and (not may_try or not self._deliver(batch)):
                self._spool(batch)
            elif may_try and not batch and self._file.exists():
                self._idle.clear()
                self._send_spooled()
            if self._queue.empty():
                self._idle.set()
                if self._closing.is_set():
                    return

    def _take(self, most: int, *, timeout: float) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = []
        try:
            batch.append(self._queue.get(timeout=timeout) if timeout else self._queue.get_nowait())
            while len(batch) < most:
                batch.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return batch

    def _deliver(self, batch: list[dict[str, Any]]) -> bool:
        """Send a batch; a record that the hub refuses is tried alone and then given up, so that it never blocks others."""
        try:
            self._connection.request("POST", "/prompt-cache/usage", batch)
        except HubError as error:
            if error.status in (401, 403, 408, 429) or error.status >= 500:
                return self._note_trouble(error)
            if len(batch) == 1:
                logger.warning("the hub refused a usage record: %s", error)
                return True
            sent = [self._deliver([record]) for record in batch]  # every one of them, whatever the first ones say
            return all(sent)
        except HubUnreachable as error:
            return self._note_trouble(error)
        self._pause, self._retry_at, self._warned = FIRST_PAUSE_SECONDS, 0.0, False
        return True

    def _note_trouble(self, error: Exception) -> bool:
        self._retry_at = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LAST_PAUSE_SECONDS)
        if not self._warned:
            self._warned = True
            logger.warning("MemoryHub did not take usage, it is kept in %s until it does: %s", self._file, error)
        return False

    def _spool(self, batch: list[dict[str, Any]]) -> None:
        """Append records to the file, without the requests' bodies: those stay in the agent's memory only."""
        lines = "".join(
            json.dumps({name: value for name, value in record.items() if name != "request"}) + "\n" for record in batch
        )
        try:
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._file.exists() and self._file.stat().st_size > MAX_SPOOL_BYTES:
                logger.warning("the usage spool %s is full; records are lost", self._file)
                return
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as spool:
                spool.write(lines)
        except OSError as error:
            logger.warning("usage could not be kept on disk and is lost: %s", error)

    def _adopt_left_behind(self) -> None:
        """Take over what a killed process was sending."""
        for taken in self._file.parent.glob(f"{self._file.stem}.*.sending"):
            pid = taken.suffixes[-2].lstrip(".")
            if pid.isdigit() and _is_running(int(pid)):
                continue
            try:
                mine = taken.with_suffix(".adopted")
                taken.rename(mine)
                with mine.open(encoding="utf-8") as lines:
                    self._spool([record for line in lines if (record := _parsed(line)) is not None])
                mine.unlink()
            except OSError as error:
                logger.warning("usage that was left behind in %s could not be read: %s", taken, error)

    def _send_spooled(self) -> None:
        """Send what waits on disk. The file is renamed first, so that two processes never send from one file."""
        taken = self._file.with_suffix(f".{os.getpid()}.sending")
        try:
            self._file.rename(taken)
        except OSError:
            return
        left: list[dict[str, Any]] = []
        with taken.open(encoding="utf-8") as lines:
            records = [record for line in lines if (record := _parsed(line)) is not None]
        for start in range(0, len(records), BATCH):
            batch = records[start : start + BATCH]
            if left or not self._deliver(batch):
                left += batch
        if left:
            self._spool(left)
        taken.unlink(missing_ok=True)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None  # a line that was cut off when its process was killed
    return record if isinstance(record, dict) else None
