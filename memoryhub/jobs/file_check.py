"""Is SQLite's file whole? Asked by a process of its own, which may be left to read a large file while the hub serves.

`python -m memoryhub.jobs.file_check FILE` prints what is damaged, or nothing. It knows nothing of Django, so that it starts
at once. SQLite checks all b-trees in one step that hears neither a time-out nor an interruption: a process can be ended.
"""

import contextlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

BUSY_SECONDS = 5
NICENESS = 10


class CheckFailed(Exception):
    """The check itself broke off, which says nothing about the file."""


class FileCheck:
    """A check under way. It holds no lock that a writer waits for, and can be ended at any moment."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-m", __name__, str(path)]
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, start_new_session=True)

    def is_over(self, *, within_seconds: float = 0) -> bool:
        """Whether it has ended, waiting that long for it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_seconds)
        return self._process.poll() is not None

    def find_damage(self) -> str:
        """Return what it found damaged, "" where nothing is; waits for its end. Raises CheckFailed where it saw no end."""
        found, _ = self._process.communicate()
        if self._process.returncode:
            raise CheckFailed(f"The check of the database's file ended with {self._process.returncode}.")
        return found.strip()

    def end(self) -> None:
        """End it, whatever it has seen."""
        self._process.kill()
        self._process.wait()


def find_damage(path: Path) -> str:
    """Return what SQLite's quick_check complains of, "" where the file is whole."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS)
        ) as database:
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if answer == "ok" else " ".join(line for line in str(answer).splitlines() if not line.startswith("***"))


if __name__ == "__main__":
    os.nice(NICENESS)
    sys.stdout.write(find_damage(Path(sys.argv[1])))
