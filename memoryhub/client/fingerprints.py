"""What a result depends on, and how it looks right now: files and folders of the machine that the agent runs on.

A file's fingerprint is (device, inode, size, mtime, ctime). Where the file changed within RACY_SECONDS of the look, a
second change could hide inside the clock's granularity, so the content's hash is taken instead. A file that is not there
has a fingerprint too: results often depend on absence.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RACY_SECONDS = 2.0  # FAT keeps two-second times; others are finer
_RACY_NS = int(RACY_SECONDS * 1e9)
MAX_TREE_ENTRIES = 200_000


@dataclass(frozen=True, slots=True)
class Depends:
    """A rule that names what a call depends on, from its arguments."""

    kind: str  # file, directory, tree, tag, version
    names: tuple[str, ...]
    value: str | Callable[..., str] | None = None


def files(*names: str | os.PathLike[str]) -> tuple[Depends, ...]:
    """The result is made of these files: each name is a parameter of the tool that holds a path (or a list of paths).

    A name that is no parameter is a path itself: `files("path")`, `files("path", "/etc/hosts")`.
    """
    return (Depends("file", tuple(str(name) for name in names)),)


def directory(*names: str | os.PathLike[str]) -> tuple[Depends, ...]:
    """The result shows what these folders list: names, types, sizes, times."""
    return (Depends("directory", tuple(str(name) for name in names)),)


def tree(*names: str | os.PathLike[str]) -> tuple[Depends, ...]:
    """The result is made of everything below these folders, contents included: grep, glob, a build."""
    return (Depends("tree", tuple(str(name) for name in names)),)


def tags(*names: str) -> tuple[Depends, ...]:
    """The result goes when somebody invalidates one of these tags."""
    return (Depends("tag", names),)


def version(name: str, value: str | Callable[[], str]) -> tuple[Depends, ...]:
    """The result goes when the named version changes, such as a schema's or a lock file's."""
    return (Depends("version", (name,), value),)


class Unseen(Exception):
    """The file can't be looked at (a circle of links, no permission): nothing can be said about it."""


class Racy(Exception):
    """Something below the folder has just changed; what was read can't be told from what is there in a moment."""


@dataclass(slots=True)
class FileState:
    """How one file looked at one moment, for checking it again without the hub."""

    path: str
    facts: tuple[int, int, int, int, int] | None  # None: absent
    sha256: str | None = None  # set while the file is too young to trust its times
    spelled: str = ""  # as the caller named it: it may be a link that points elsewhere by now

    def is_unchanged(self) -> bool:
        """Tell whether the file still is as it was. Costs one stat, and a hash while the file is young."""
        try:
            facts = _facts(self.spelled or self.path)
        except Unseen:
            return False
        if facts != self.facts:
            return False
        if self.sha256 is None or facts is None:
            return True
        return self._has_same_content(facts)

    def _has_same_content(self, facts: tuple[int, int, int, int, int]) -> bool:
        looked_at_ns = time.time_ns()
        try:
            if _hash_of(self.path) != self.sha256:
                return False
            if max(facts[3], facts[4]) < looked_at_ns - _RACY_NS and _facts(self.path) == facts:
                self.sha256 = None  # the times have become old enough to speak for the content
        except (OSError, Unseen):
            return False
        return True

    def as_fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint as the hub takes it; a young file's times are left out, for they prove nothing."""
        if self.facts is None:
            return {"kind": "file", "path": self.path, "absent": True}
        dev, ino, size, mtime_ns, ctime_ns = self.facts
        if self.sha256 is not None:
            return {"kind": "file", "path": self.path, "size": size, "sha256": self.sha256}
        return {
            "kind": "file", "path": self.path, "dev": dev, "ino": ino, "size": size, "mtime_ns": mtime_ns,
            "ctime_ns": ctime_ns,
        }  # fmt: skip


def look_at_file(path: str, *, with_hash: bool = False) -> FileState:
    """Look at a file now: before it is read, never after."""
    facts = _facts(path)
    if facts is None:
        return FileState(path, None)
    young = facts[3] > time.time_ns() - _RACY_NS or facts[4] > time.time_ns() - _RACY_NS
    if not (young or with_hash):
        return FileState(path, facts)
    try:
        return FileState(path, facts, _hash_of(path))
    except IsADirectoryError:
        return FileState(path, facts)
    except FileNotFoundError:
        return FileState(path, None)
    except OSError as error:
        raise Unseen(str(error)) from error


def _facts(path: str) -> tuple[int, int, int, int, int] | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unseen(str(error)) from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _hash_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def look_at_folder(path: str, *, contents: bool) -> dict[str, Any]:
    """Return a folder's fingerprint: a hash over what its listing shows; with `contents` over all folders below.

    With contents, a file that has just changed raises Racy: the result is used, and not stored this time. The hub looks
    at folders below its own roots by the same rule (session_cache/services/file_roots.py).
    """
    digest = hashlib.sha256()
    young_ns = time.time_ns() - _RACY_NS
    count = 0
    waiting = [path]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            if folder == path:
                return {"kind": "directory", "path": path, "absent": True}
            continue
        digest.update(os.fsencode(os.path.relpath(folder, path)) + b"\0\0")
        for entry in entries:
            count += 1
            if count > MAX_TREE_ENTRIES:
                raise Racy(f"more than {MAX_TREE_ENTRIES} entries below {path}")
            if _note_entry(digest, entry, contents=contents, young_ns=young_ns):
                waiting.append(entry.path)
    return {"kind": "directory", "path": path, "sha256": digest.hexdigest(), "recursive": contents}


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
        raise Racy(f"{entry.path} has just changed")
    return is_folder and contents


@dataclass(slots=True)
class Look:
    """Everything that one call depends on, as it looked before the call."""

    files: list[FileState]
    fingerprints: list[dict[str, Any]]
    is_racy: bool = False

    @property
    def files_alone_decide(self) -> bool:
        """Tell whether checking the files again answers for all paths (folders are too dear for that)."""
        return not any(item["kind"] == "directory" for item in self.fingerprints)


def take_look(rules: Iterable[Depends], arguments: Mapping[str, Any], *, with_hash: bool = False) -> Look:
    """Look at what a call with these arguments depends on."""
    look = Look([], [])
    for rule in rules:
        for name in rule.names:
            if rule.kind in ("tag", "version"):
                look.fingerprints.append(_named(rule, name))
                continue
            for spelled in paths_of(name, arguments):
                _look_at_path(look, rule.kind, spelled, with_hash)
    return look


def _named(rule: Depends, name: str) -> dict[str, Any]:
    if rule.kind == "tag":
        return {"kind": "tag", "name": name}
    value = rule.value() if callable(rule.value) else rule.value
    return {"kind": "version", "name": name, "value": str(value)}


def _look_at_path(look: Look, kind: str, spelled: str, with_hash: bool) -> None:
    path = real_path(spelled)
    if kind == "file":
        try:
            state = look_at_file(path, with_hash=with_hash)
        except Unseen:
            look.is_racy = True
            return
        state.spelled = spelled
        look.files.append(state)
        look.fingerprints.append(state.as_fingerprint())
        return
    try:
        look.fingerprints.append(look_at_folder(path, contents=kind == "tree"))
    except (Racy, OSError):
        look.is_racy = True


def paths_of(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the paths that a rule's name stands for, absolute: a parameter's value or values, or the name itself."""
    value = arguments.get(name, name)
    values = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return [_absolute(item) for item in values if isinstance(item, str | os.PathLike)]


def _absolute(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    return os.path.join(os.getcwd(), os.path.expanduser(text) if text.startswith("~") else text)


def real_path(path: str | os.PathLike[str]) -> str:
    """Return the one name of a path: absolute, without links, dots and doubled slashes."""
    return os.path.realpath(_absolute(path))
