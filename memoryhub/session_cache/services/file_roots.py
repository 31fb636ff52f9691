"""The hub's own look at files and folders, below the ones that it is allowed to see (MEMORYHUB_FILE_ROOTS).

The rules are the client's (memoryhub/client/fingerprints.py), so that either side proves what the other has stored; a
test holds them together. One look-up looks at no more than a budget allows: what is beyond it stays unproven.
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings

from memoryhub.common import clock
from memoryhub.invalidation.domain.dependency import Dependency

RACY_SECONDS = 2.0  # younger files are told by their content: a second change could hide in the clock's granularity
MOST_ENTRIES = 20_000  # of folders, in one look-up
MOST_HASHED_BYTES = 64 * 1024 * 1024


class _Undecided(Exception):
    """Nothing can be said: too much to look at, no permission, or something has changed just now."""


@dataclass(slots=True)
class _Budget:
    entries: int = MOST_ENTRIES
    bytes: int = MOST_HASHED_BYTES

    def take_entry(self) -> None:
        self.entries -= 1
        if self.entries < 0:
            raise _Undecided

    def take_bytes(self, size: int) -> None:
        if size > self.bytes:
            raise _Undecided
        self.bytes -= size


@lru_cache(maxsize=8)
def _resolved(roots: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.realpath(root).rstrip("/") + "/" for root in roots)


def is_allowed(path: str) -> bool:
    """Tell whether the hub may look at the path: it lies, links resolved, below an allowed folder."""
    roots = _resolved(tuple(settings.FILE_ROOTS))
    return bool(roots) and (os.path.realpath(path) + "/").startswith(roots)


def look_at(dependencies: Iterable[Dependency]) -> dict[tuple[str, str], Dependency]:
    """Return what the hub sees of the files and folders among them that it may look at; others are left out."""
    if not settings.FILE_ROOTS:
        return {}
    budget = _Budget()
    seen: dict[tuple[str, str], Dependency] = {}
    for dependency in dependencies:
        if dependency.is_path and is_allowed(dependency.name):
            look = _look_at_file if dependency.kind == "file" else _look_at_folder
            try:
                seen[dependency.identity] = look(dependency, dict(dependency.facts), budget)
            except (_Undecided, OSError):
                continue
    return seen


def _look_at_file(stored: Dependency, known: dict[str, Any], budget: _Budget) -> Dependency:
    try:
        found = os.stat(stored.name)
    except (FileNotFoundError, NotADirectoryError):
        return _absent(stored)
    facts: list[tuple[str, object]] = [
        ("dev", found.st_dev),
        ("ino", found.st_ino),
        ("size", found.st_size),
        ("mtime_ns", found.st_mtime_ns),
        ("ctime_ns", found.st_ctime_ns),
    ]
    if "sha256" in known and stat.S_ISREG(found.st_mode) and known.get("size", found.st_size) == found.st_size:
        budget.take_bytes(found.st_size)
        facts.append(("sha256", _hash_of(stored.name)))
    return Dependency("file", stored.name, tuple(facts))


def _look_at_folder(stored: Dependency, known: dict[str, Any], budget: _Budget) -> Dependency:
    """Look at a folder the way that its stored look was taken; where that is not said, only an equal look counts."""
    if not os.path.isdir(stored.name):
        return _absent(stored)
    if known.get("absent"):
        return Dependency("directory", stored.name)  # it is there now
    if "sha256" not in known:
        raise _Undecided
    ways = (known["recursive"],) if "recursive" in known else (False, True)
    for contents in ways:
        digest = folder_hash(stored.name, contents=contents, budget=budget)
        if digest == known["sha256"] or "recursive" in known:
            return Dependency("directory", stored.name, (("sha256", digest),))
    raise _Undecided


def _absent(stored: Dependency) -> Dependency:
    return Dependency(stored.kind, stored.name, (("absent", True),))


def _hash_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_hash(path: str, *, contents: bool, budget: _Budget | None = None) -> str:
    """Return the hash over what a folder's listing shows; with `contents` over all folders below it.

    Raises _Undecided where the budget does not reach, or where, with contents, a file has changed just now.
    """
    budget = budget or _Budget()
    digest = hashlib.sha256()
    young_ns = int((clock.now().timestamp() - RACY_SECONDS) * 1e9)
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            if folder == path:
                raise
            continue
        digest.update(os.fsencode(os.path.relpath(folder, path)) + b"\0\0")
        for entry in entries:
            budget.take_entry()
            if _note_entry(digest, entry, contents=contents, young_ns=young_ns):
                waiting.append(entry.path)
    return digest.hexdigest()


def _note_entry(digest: Any, entry: os.DirEntry[str], *, contents: bool, young_ns: int) -> bool:
    """Add one entry to the hash and tell whether its own entries belong to it too."""
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    is_folder = stat.S_ISDIR(found.st_mode)
    times = () if is_folder and contents else (found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    facts = (stat.S_IFMT(found.st_mode), found.st_ino, *times)
    digest.update(os.fsencode(entry.name) + b"\0" + repr(facts).encode() + b"\0")
    if stat.S_ISLNK(found.st_mode):
        digest.update(os.fsencode(os.readlink(entry.path)) + b"\0")
    if contents and stat.S_ISREG(found.st_mode) and max(found.st_mtime_ns, found.st_ctime_ns) > young_ns:
        raise _Undecided
    return is_folder and contents
