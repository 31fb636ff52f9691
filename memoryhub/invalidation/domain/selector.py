"""A change, as somebody announces it: which entries does it touch?"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from posixpath import dirname
from typing import Any

from memoryhub.invalidation.domain.dependency import Dependency, clean_path

_GLOB = re.compile(r"[*?\[]")
FIELDS = ("session", "tool", "params", "key", "tag", "path", "event")


class EmptySelector(ValueError):
    """Nothing is selected by nothing: an invalidation without a selector would empty the cache by accident."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a selector is tried on: one stored entry, or one that is about to be stored."""

    session: str
    tool: str
    params_hash: str
    key: str
    dependencies: tuple[Dependency, ...] = ()
    event: str = ""


@dataclass(frozen=True, slots=True)
class Selector:
    """All given fields must match. `tool` is exact unless it holds * ? or [.

    `tool_or_tag` is what a write tool declares: the name of a tool, or of a tag. `unknown_write` names a tool that may
    have changed anything: it selects nothing, for nothing is known to be wrong; what is older has to be proven again.
    """

    session: str | None = None
    tool: str | None = None
    params_hash: str | None = None
    key: str | None = None
    tag: str | None = None
    path: str | None = None
    event: str | None = None
    tool_or_tag: str | None = None
    unknown_write: str | None = None

    def __post_init__(self) -> None:
        if not any(getattr(self, name) for name in self.__slots__):
            raise EmptySelector("name at least one of " + ", ".join(FIELDS))

    def touches(self, subject: Subject) -> bool:
        """Tell whether the change concerns this entry."""
        return (
            not self.unknown_write
            and (not self.session or subject.session == self.session)
            and (not self.tool or tool_matches(self.tool, subject.tool))
            and (not self.params_hash or subject.params_hash == self.params_hash)
            and (not self.key or subject.key == self.key)
            and (not self.event or subject.event == self.event)
            and (not self.tag or any(d.kind == "tag" and d.name == self.tag for d in subject.dependencies))
            and (not self.path or touches_path(self.path, subject.dependencies))
            and (not self.tool_or_tag or self._names(subject))
        )

    def _names(self, subject: Subject) -> bool:
        name = self.tool_or_tag or ""
        return tool_matches(name, subject.tool) or any(d.kind == "tag" and d.name == name for d in subject.dependencies)

    def as_dict(self) -> dict[str, Any]:
        """Return the given fields only, as the log and the stream show them."""
        return {name: getattr(self, name) for name in self.__slots__ if getattr(self, name)}


def is_glob(pattern: str) -> bool:
    """Tell whether the text is a pattern rather than a name."""
    return bool(_GLOB.search(pattern))


def tool_matches(pattern: str, tool: str) -> bool:
    """Tell whether the pattern names the tool: `read_file` is only that one, `read_*` is a family."""
    return fnmatchcase(tool, pattern) if is_glob(pattern) else tool == pattern


def touches_path(path: str, dependencies: Iterable[Dependency]) -> bool:
    """Tell whether a change at the path can alter one of the dependencies.

    The path itself; everything below it, for it may be a folder; and every listing of a folder above it.
    """
    changed = clean_path(path)
    above = set(ancestors(changed))
    below = changed.rstrip("/") + "/"
    return any(
        d.is_path and (d.name == changed or d.name.startswith(below) or (d.kind == "directory" and d.name in above))
        for d in dependencies
    )


def ancestors(path: str) -> list[str]:
    """Return the folders that hold the path, the nearest first."""
    found = []
    folder = dirname(path)
    while folder and folder not in found:
        found.append(folder)
        folder = dirname(folder)
    return found
