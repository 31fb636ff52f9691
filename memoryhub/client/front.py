"""The client's own small cache in front of the hub: a dict, one stat per file, no round trip.

It answers only while the hub's invalidations can be heard, and only entries that nothing was announced against. A hit
costs about what `os.stat` and `json.loads` cost, and every caller gets a value of their own.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import dirname
from typing import Any

from memoryhub.client.fingerprints import FileState

MAX_ENTRIES = 2000
MAX_CHARACTERS = 32 * 1024 * 1024


@dataclass(slots=True)
class FrontEntry:
    """A value with what its validity hangs on."""

    text: str  # the encoded value's JSON
    tool: str
    session: str
    key: str
    files: list[FileState]
    tags: frozenset[str]
    paths: tuple[tuple[str, str], ...]  # (kind, path) of files and folders
    expires_at: float | None  # monotonic


class FrontCache:
    """Safe to share between threads."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, FrontEntry] = OrderedDict()
        self._characters = 0
        self._lock = threading.Lock()
        self.is_live = False  # whether the hub's invalidations are being heard
        self.announcements = 0  # how many were heard: a value from before one is not taken in after it

    def get(self, key: Hashable) -> FrontEntry | None:
        """Return an entry that still holds, or None."""
        if not self.is_live:
            return None
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires_at is not None and time.monotonic() >= entry.expires_at:
            self._drop([key])
            return None
        for state in entry.files:
            if not state.is_unchanged():
                self._drop([key])
                return None
        return entry

    def put(self, key: Hashable, entry: FrontEntry, *, heard: int) -> None:
        """Take an entry in, unless something was announced since `heard`."""
        size = len(entry.text)
        with self._lock:
            if not self.is_live or heard != self.announcements or size > MAX_CHARACTERS // 10:
                return
            old = self._entries.pop(key, None)
            self._characters += size - (len(old.text) if old else 0)
            self._entries[key] = entry
            while len(self._entries) > MAX_ENTRIES or self._characters > MAX_CHARACTERS:
                _, evicted = self._entries.popitem(last=False)
                self._characters -= len(evicted.text)

    def announce(self, selector: Mapping[str, Any]) -> None:
        """Drop what an announced change touches."""
        with self._lock:
            self.announcements += 1
            touched = [key for key, entry in self._entries.items() if touches(selector, entry)]
        self._drop(touched)

    def clear(self) -> None:
        """Drop everything: the stream broke, or too much was missed."""
        with self._lock:
            self.announcements += 1
            self._entries.clear()
            self._characters = 0

    def _drop(self, keys: list[Hashable]) -> None:
        with self._lock:
            for key in keys:
                entry = self._entries.pop(key, None)
                if entry is not None:
                    self._characters -= len(entry.text)

    def __len__(self) -> int:
        return len(self._entries)


def touches(selector: Mapping[str, Any], entry: FrontEntry) -> bool:
    """Tell whether a change touches the entry; what can't be told here counts as yes."""
    session, tool, key, tag = (selector.get(name) for name in ("session", "tool", "key", "tag"))
    name = selector.get("tool_or_tag")
    if selector.get("unknown_write"):
        return False  # any file may have changed; the ones of an entry are looked at before each answer anyway
    return (
        (not session or session == entry.session)
        and (not tool or fnmatchcase(entry.tool, tool))
        and (not key or key == entry.key)
        and (not tag or tag in entry.tags)
        and (not name or fnmatchcase(entry.tool, name) or name in entry.tags)
        and (not selector.get("path") or _touches_path(str(selector["path"]), entry))
    )


def _touches_path(path: str, entry: FrontEntry) -> bool:
    above = set()
    folder = dirname(path)
    while folder and folder not in above:
        above.add(folder)
        folder = dirname(folder)
    below = path.rstrip("/") + "/"
    return any(
        name == path or name.startswith(below) or (kind == "directory" and name in above) for kind, name in entry.paths
    )
