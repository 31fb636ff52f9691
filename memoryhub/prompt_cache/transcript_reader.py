"""Finding transcript files and reading their lines: streamed, bounded in memory, and able to go on where a reading stopped."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import orjson

SUFFIX = ".jsonl"
LONGEST_LINE_BYTES = 64 * 1024 * 1024
_READ_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"
# A rewritten file is noticed by samples spread over what was read, so that checking 200 MB costs 64 KB.
_SAMPLES = 16
_SAMPLE_BYTES = 4096
_LONGEST_META_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A transcript on disk, as it was when it was found."""

    path: str
    size: int
    mtime_ns: int

    @property
    def shown(self) -> str:
        """The path as text that can be stored and printed; a name that is not UTF-8 keeps a mark in place of each odd byte."""
        return os.fsencode(self.path).decode("utf-8", "replace").replace("\x00", "")

    @property
    def stem(self) -> str:
        return Path(self.shown).stem


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that leads to no transcript, and why."""

    path: str
    reason: str


def find_transcripts(paths: Iterable[str | Path]) -> tuple[list[FoundFile], list[Unreadable]]:
    """All transcripts at or below the paths, in the order of their paths, each once; and the paths that lead nowhere."""
    found: dict[str, FoundFile] = {}
    unreadable: list[Unreadable] = []
    for given in paths:
        try:
            path = os.path.realpath(given)
            mode = os.stat(path).st_mode
        except (OSError, ValueError) as error:
            unreadable.append(Unreadable(str(given), getattr(error, "strerror", None) or "is no path"))
            continue
        if stat.S_ISREG(mode):
            found[path] = _found(path)
        elif stat.S_ISDIR(mode):
            below = {file.path: file for file in _walk(path)}
            found.update(below)
            if not below:
                unreadable.append(Unreadable(str(given), f"holds no {SUFFIX} file"))
        else:
            unreadable.append(Unreadable(str(given), "is neither a file nor a folder"))
    return [found[path] for path in sorted(found)], unreadable


def _found(path: str) -> FoundFile:
    status = os.stat(path)
    return FoundFile(path, status.st_size, status.st_mtime_ns)


def _walk(folder: str) -> Iterator[FoundFile]:
    """Regular files below a folder. Links are not followed: they may lead out of what was named."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        yield FoundFile(entry.path, status.st_size, status.st_mtime_ns)
        except OSError:
            continue  # a folder that vanished or is closed to us; the others are still read


@dataclass(slots=True)
class Line:
    """One line of a file. `end` is the position behind it; `data` is None where the line is too long to hold."""

    number: int
    data: bytes | None
    end: int
    is_finished: bool


def read_lines(file: BinaryIO, *, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines from a position on, which may lie behind a line that had no end yet. Blank lines are counted only."""
    within_line = _is_within_line(file, offset)
    file.seek(offset)
    position = offset
    while data := file.readline(LONGEST_LINE_BYTES + 1):
        position += len(data)
        number += 0 if within_line else 1
        within_line = False
        if len(data) > LONGEST_LINE_BYTES and not data.endswith(b"\n"):
            position += _skip_line(file)
            yield Line(number, None, position, is_finished=True)
            continue
        if number == 1 and data.startswith(_BOM):
            data = data[len(_BOM) :]
        if data.isspace() or not data:
            continue
        yield Line(number, data, position, is_finished=data.endswith(b"\n"))


def _is_within_line(file: BinaryIO, offset: int) -> bool:
    if not offset:
        return False
    file.seek(offset - 1)
    return file.read(1) != b"\n"


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while data := file.readline(_READ_BYTES):
        skipped += len(data)
        if data.endswith(b"\n"):
            break
    return skipped


def open_transcript(path: str) -> BinaryIO:
    return open(path, "rb", buffering=_READ_BYTES)


def sample_sha256(file: BinaryIO, length: int) -> str:
    """A digest over samples of the first `length` bytes: the beginning, the end, and places between."""
    digest = hashlib.sha256(str(length).encode())
    if length <= _SAMPLES * _SAMPLE_BYTES:
        file.seek(0)
        digest.update(file.read(length))
        return digest.hexdigest()
    step = (length - _SAMPLE_BYTES) / (_SAMPLES - 1)
    for index in range(_SAMPLES):
        file.seek(round(index * step))
        digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


def agent_type_of(path: str) -> str:
    """The sub-agent's type from the `agent-<id>.meta.json` beside its transcript; "" where there is none."""
    meta = Path(path).with_suffix(".meta.json")
    try:
        with open(meta, "rb") as file:
            data = orjson.loads(file.read(_LONGEST_META_BYTES))
    except (OSError, orjson.JSONDecodeError):
        return ""
    kind = data.get("agentType") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else ""
