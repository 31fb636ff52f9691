"""What a cached thing depends on, and what it means when two looks at the same dependency differ."""

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_DEPENDENCIES = 1000  # of one entry: a glob over more files is one directory fingerprint
MAX_TEXT_BYTES = 2000  # of a path, url, name or value: what an index of either database takes
_STAT_FIELDS = ("dev", "ino", "size", "mtime_ns", "ctime_ns")
_FIELDS: dict[str, tuple[str, tuple[str, ...]]] = {  # kind -> (its name's field, the fields that are compared)
    "file": ("path", ("absent", *_STAT_FIELDS, "sha256")),
    "directory": ("path", ("absent", "sha256", "recursive")),  # recursive: of everything below, not of the listing
    "url": ("url", ("etag",)),
    "tag": ("name", ()),
    "version": ("name", ("value",)),
}
KINDS = tuple(_FIELDS)


class BadDependency(ValueError):
    """A dependency that can't be understood; the message says what is wrong with it."""


class Match(StrEnum):
    """What comparing the stored dependency with the shown one says."""

    PROVEN_BY_HASH = "hash"
    PROVEN_BY_FINGERPRINT = "fingerprint"
    UNPROVEN = "unproven"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Dependency:
    """One thing that a result was computed from: kind and name say which, facts say in which state it was seen."""

    kind: str
    name: str
    facts: tuple[tuple[str, Any], ...] = ()

    @property
    def identity(self) -> tuple[str, str]:
        return self.kind, self.name

    @property
    def is_path(self) -> bool:
        return self.kind in ("file", "directory")

    def as_dict(self) -> dict[str, Any]:
        """Return the dependency as the API shows it."""
        return {"kind": self.kind, _FIELDS[self.kind][0]: self.name, **dict(self.facts)}


def parse_dependency(raw: Mapping[str, Any]) -> Dependency:
    """Return the dependency that a caller describes, or raise BadDependency with a sentence."""
    kind = raw.get("kind")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise BadDependency(f"kind must be one of {', '.join(KINDS)}")
    name_field, compared = _FIELDS[kind]
    name = raw.get(name_field)
    if not isinstance(name, str) or not is_storable_text(name):
        raise BadDependency(f"a {kind} needs {name_field}, a text of 1 to {MAX_TEXT_BYTES} bytes")
    unknown = sorted(str(key) for key in raw if key not in (*compared, "kind", name_field))
    if unknown:
        raise BadDependency(f"a {kind} has no field {unknown[0][:40]}")
    facts = tuple((field, _checked(kind, field, raw[field])) for field in compared if raw.get(field) is not None)
    return Dependency(kind, clean_path(name) if kind in ("file", "directory") else name, facts)


def parse_dependencies(raw: Iterable[Mapping[str, Any]]) -> tuple[Dependency, ...]:
    """Return each described dependency once, the later description of the same thing winning."""
    parsed = {dependency.identity: dependency for dependency in map(parse_dependency, raw)}
    if len(parsed) > MAX_DEPENDENCIES:
        raise BadDependency(f"at most {MAX_DEPENDENCIES} dependencies; use a directory's fingerprint for more")
    return tuple(parsed.values())


def clean_path(path: str) -> str:
    """Return the path without doubled or trailing slashes and dots. The client has resolved links before."""
    cleaned = posixpath.normpath(path)
    return cleaned[1:] if cleaned.startswith("//") else cleaned


def _checked(kind: str, field: str, value: Any) -> Any:
    if field in ("absent", "recursive"):
        if not isinstance(value, bool):
            raise BadDependency(f"{field} is true or false")
        return value
    if field in _STAT_FIELDS:
        if isinstance(value, bool) or not isinstance(value, int):
            raise BadDependency(f"{field} of a {kind} is a whole number")
        return value
    if not is_storable_text(value):
        raise BadDependency(f"{field} of a {kind} is a text of 1 to {MAX_TEXT_BYTES} bytes")
    return value


def is_storable_text(value: Any, limit: int = MAX_TEXT_BYTES) -> bool:
    """Tell whether the value is a text that both databases store and index: no NUL, no half surrogate pair, not long."""
    if not isinstance(value, str) or not value or "\0" in value:
        return False
    try:
        return len(value.encode()) <= limit
    except UnicodeEncodeError:
        return False


def compare(stored: Dependency, shown: Dependency) -> Match:
    """Say whether the shown state proves the stored one, contradicts it, or says too little.

    Equal content hashes prove, whatever the times say; different ones contradict. Otherwise every field that both
    sides know must be equal (never "newer than": a restored file has an older time), and size with mtime is a proof.
    """
    if stored.kind == "tag":
        return Match.PROVEN_BY_FINGERPRINT
    was, is_now = dict(stored.facts), dict(shown.facts)
    if was.get("absent", False) or is_now.get("absent", False):
        both = was.get("absent", False) and is_now.get("absent", False)
        return Match.PROVEN_BY_FINGERPRINT if both else Match.DIFFERENT
    if "sha256" in was and "sha256" in is_now:
        return Match.PROVEN_BY_HASH if was["sha256"] == is_now["sha256"] else Match.DIFFERENT
    common = [field for field in was if field in is_now and field != "absent"]
    if any(was[field] != is_now[field] for field in common):
        return Match.DIFFERENT
    proof = {"url": ("etag",), "version": ("value",)}.get(stored.kind, ("size", "mtime_ns"))
    return Match.PROVEN_BY_FINGERPRINT if all(field in common for field in proof) else Match.UNPROVEN


def compare_all(stored: Sequence[Dependency], shown: Mapping[tuple[str, str], Dependency]) -> Match:
    """Say what the shown dependencies prove about all of the stored ones: the weakest proof counts."""
    verdict = Match.PROVEN_BY_HASH
    for dependency in stored:
        evidence = shown.get(dependency.identity)
        match = compare(dependency, evidence) if evidence else Match.UNPROVEN
        if match is Match.DIFFERENT:
            return match
        if match is Match.UNPROVEN or verdict is Match.UNPROVEN:
            verdict = Match.UNPROVEN
        elif match is Match.PROVEN_BY_FINGERPRINT:
            verdict = match
    return verdict
