"""The hub's own look at files, for paths below the folders that it is allowed to see (MEMORYHUB_FILE_ROOTS)."""

import hashlib
import os
import stat
from collections.abc import Iterable
from functools import lru_cache

from django.conf import settings

from memoryhub.invalidation.domain.dependency import Dependency


@lru_cache(maxsize=8)
def _resolved(roots: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.realpath(root).rstrip("/") + "/" for root in roots)


def is_allowed(path: str) -> bool:
    """Tell whether the hub may look at the path: it lies, links resolved, below an allowed folder."""
    roots = _resolved(tuple(settings.FILE_ROOTS))
    return bool(roots) and (os.path.realpath(path) + "/").startswith(roots)


def look_at(dependencies: Iterable[Dependency]) -> dict[tuple[str, str], Dependency]:
    """Return what the hub sees of the files among them that it may look at; others are left out."""
    if not settings.FILE_ROOTS:
        return {}
    return {
        dependency.identity: look
        for dependency in dependencies
        if dependency.kind == "file" and is_allowed(dependency.name) and (look := _look_at_file(dependency))
    }


def _look_at_file(dependency: Dependency) -> Dependency | None:
    try:
        found = os.stat(dependency.name)
    except FileNotFoundError:
        return Dependency("file", dependency.name, (("absent", True),))
    except OSError:
        return None
    facts: list[tuple[str, object]] = [
        ("dev", found.st_dev),
        ("ino", found.st_ino),
        ("size", found.st_size),
        ("mtime_ns", found.st_mtime_ns),
        ("ctime_ns", found.st_ctime_ns),
    ]
    known = dict(dependency.facts)
    if "sha256" in known and stat.S_ISREG(found.st_mode) and known.get("size", found.st_size) == found.st_size:
        facts.append(("sha256", _hash_of(dependency.name)))
    return Dependency("file", dependency.name, tuple(facts))


def _hash_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
