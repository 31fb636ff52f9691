"""Storing contents once: the same bytes in a workspace are one row, however many events carry them."""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from memoryhub.common.many_rows import insert_many
from memoryhub.session_cache.models import Blob
from memoryhub.workspaces.models import Workspace

_COMPRESS_FROM_BYTES = 200  # below it the header eats the gain
_WORTH_IT = 0.9  # compressed only where it saves a tenth
_LEVEL = 1  # four times as fast as the default for nearly the same size on JSON
_CHUNK = 900
_ONE_BY_ONE = 3  # contents up to which plain statements are faster than sets
_FIND_ONE = "SELECT id FROM session_cache_blob WHERE workspace_id = %s AND sha256 = %s"
_FIND_MANY = "SELECT sha256, id FROM session_cache_blob WHERE workspace_id = %s AND sha256 IN ({})"
_INSERT_ONE = (
    "INSERT INTO session_cache_blob (workspace_id, sha256, codec, data, size_bytes) VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT DO NOTHING RETURNING id"
)

# SQLite's transaction is the only writer; PostgreSQL has to be told that a row which was only read is needed.
_KEPT = {"postgresql": " FOR KEY SHARE"}


def ensure_blobs(*, workspace: Workspace, contents: Mapping[bytes, bytes]) -> dict[bytes, int]:
    """Store contents by their SHA-256 and return the row ids; what is there already is only looked up.

    Runs inside the caller's transaction, and what it returns stays until that ends: the collector of unused contents
    passes rows by that somebody is about to use (see garbage.remove_unused_blobs).
    """
    if len(contents) <= _ONE_BY_ONE:
        return {sha: _ensure_one(workspace.pk, sha, data) for sha, data in contents.items()}
    known = _find(workspace, contents)
    while missing := [(sha, contents[sha]) for sha in contents if sha not in known]:
        insert_rows(
            Blob,
            ("workspace_id", "sha256", "codec", "data", "size_bytes"),
            ((workspace.pk, sha, *packed(data), len(data)) for sha, data in missing),
            ignore_conflicts=True,
        )
        known |= _find(workspace, [sha for sha, _ in missing])  # one of another writer may be collected before this
    return known


def _ensure_one(workspace_id: int, sha: bytes, data: bytes) -> int:
    """Store one content: two plain statements at the most."""
    with connection.cursor() as cursor:
        find = _FIND_ONE + _KEPT.get(connection.vendor, "")
        cursor.execute(find, [workspace_id, sha])
        row = cursor.fetchone()
        while row is None:
            cursor.execute(_INSERT_ONE, [workspace_id, sha, *packed(data), len(data)])
            row = cursor.fetchone()
            if row is None:  # another writer was faster, and is done
                cursor.execute(find, [workspace_id, sha])
                row = cursor.fetchone()
    return int(row[0])


def _find(workspace: Workspace, digests: Iterable[bytes]) -> dict[bytes, int]:
    wanted = list(digests)
    found: dict[bytes, int] = {}
    with connection.cursor() as cursor:
        for start in range(0, len(wanted), _CHUNK):
            some = wanted[start : start + _CHUNK]
            marks = ", ".join(["%s"] * len(some))
            cursor.execute(_FIND_MANY.format(marks) + _KEPT.get(connection.vendor, ""), [workspace.pk, *some])
            found |= {bytes(sha): pk for sha, pk in cursor.fetchall()}
    return found


def packed(data: bytes) -> tuple[int, bytes]:
    """Return a content as it is stored, with its codec: compressed where that is worth it."""
    if len(data) >= _COMPRESS_FROM_BYTES:
        packed = zlib.compress(data, _LEVEL)
        if len(packed) < len(data) * _WORTH_IT:
            return Blob.Codec.ZLIB.value, packed
    return Blob.Codec.PLAIN.value, data


def insert_rows(
    model: Any, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]], *, ignore_conflicts: bool = False
) -> None:
    """Insert many rows as tuples: several times as fast as one object each."""
    tail = "ON CONFLICT DO NOTHING" if ignore_conflicts else ""
    insert_many(model._meta.db_table, columns, list(rows), tail=tail)
