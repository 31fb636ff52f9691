"""Reading memories that are addressed like files: by scope and path, in the order of their paths.

Paths are compared byte by byte on both databases, whatever language the database sorts by.
"""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import F, Func, IntegerField, QuerySet
from django.db.models.functions import Collate

from memoryhub.common import errors
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, Scope
from memoryhub.workspaces.models import Workspace

AFTER_SLASH = "0"  # the character behind "/": everything below "/a/" sorts before "/a0"


class UnknownFile(errors.NotFound):
    slug = "unknown-file"
    title = "There is nothing at this path"


class BadPlace(errors.Invalid):
    slug = "bad-cursor"
    title = "This cursor does not belong to this list"


class ContentBytes(Func):
    """How many bytes a text takes in UTF-8, counted where it lies."""

    function = "OCTET_LENGTH"
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **context)


@dataclass(frozen=True, slots=True)
class Directory:
    """A common beginning of paths, with its closing slash."""

    path: str


def find_scope_row(workspace: Workspace, names: ScopeNames) -> Scope | None:
    """The scope of exactly these names, None while nothing was written to it."""
    given = {name: value or "" for name, value in names.as_dict().items()}
    return Scope.objects.filter(workspace=workspace, **given).first()


def files_of(scope: Scope | None) -> QuerySet[Any]:
    """The files of a scope that are not in the trash, in byte order of their paths, with `size_bytes`."""
    rows: QuerySet[Any] = Memory.objects.out_of_trash().filter(path__isnull=False)
    rows = rows.filter(scope=scope) if scope else rows.none()
    collation = "C" if connection.vendor == "postgresql" else "BINARY"
    return (
        rows.select_related("scope")
        .annotate(place=Collate(F("path"), collation), size_bytes=ContentBytes(F("content")))
        .order_by("place")
    )


def get_file(workspace: Workspace, names: ScopeNames, path: str) -> Memory:
    """The file at a path; raises UnknownFile."""
    _check_text(path)
    found = files_of(find_scope_row(workspace, names)).filter(path=path).first()
    if found is None:
        raise UnknownFile(f"There is no file {path[:200]}.")
    return found


def below(files: QuerySet[Any], directory: str) -> QuerySet[Any]:
    """Those whose path starts with a directory, given with its closing slash."""
    return files.filter(place__gte=directory, place__lt=directory[:-1] + AFTER_SLASH)


def list_files(
    files: QuerySet[Any], *, prefix: str, limit: int, cursor: str | None, direct_only: bool = False
) -> tuple[list[Memory | Directory], str | None]:
    """A page of the files below a prefix; with `direct_only` what lies deeper is told by its directory alone.

    Skips over a directory in the index, however many files it holds.
    """
    _check_text(prefix)
    rows = below(files, prefix)
    start, strict = _read_cursor(cursor) if cursor else (prefix, False)
    found: list[Memory | Directory] = []
    while len(found) <= limit:
        wanted = limit + 1
        batch = list(rows.filter(**{"place__gt" if strict else "place__gte": start})[:wanted])
        for memory in batch:
            path = memory.path or ""
            inner, slash, _ = path[len(prefix) :].partition("/")
            if slash and direct_only:
                directory = f"{prefix}{inner}/"
                if not (found and found[-1] == Directory(directory)):
                    found.append(Directory(directory))
                start, strict = directory[:-1] + AFTER_SLASH, False
            else:
                found.append(memory)
                start, strict = path, True
        if len(batch) < wanted:
            break
    page = found[:limit]
    return page, _write_cursor(page) if len(found) > limit else None


def _check_text(path: str) -> None:
    """A path that no database can hold is no path."""
    if "\x00" in path or (not path.isprintable() and any("\ud800" <= character <= "\udfff" for character in path)):
        raise UnknownFile("There is nothing at such a path.")


def _write_cursor(page: Sequence[Memory | Directory]) -> str:
    last = page[-1]
    place = [last.path[:-1] + AFTER_SLASH, False] if isinstance(last, Directory) else [last.path, True]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[str, bool]:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        start, strict = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if not isinstance(start, str) or not isinstance(strict, bool) or "\x00" in start:
            raise ValueError
        start.encode()
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise BadPlace("Use the cursor of the page before.") from error
    return start, strict
