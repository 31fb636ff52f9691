"""A branch's events, the newest first: what is packed at its head by one row, the rest by ranges of an index.

Events never change and their numbers have no gaps, so a pack is right for as long as its branch exists, wherever a window
begins: after more appends, below a rewind, in a fork's past.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection

from memoryhub.session_cache.domain.context_window import WindowEvent
from memoryhub.session_cache.domain.event_tree import NOTE
from memoryhub.session_cache.queries.blobs import raw_bytes

ROWS_AT_ONCE = 500
WORTH_A_PACK = 100  # events; whoever wants fewer is served by rows faster than by unpacking
_COLUMNS = "e.event_id, e.kind, e.role, e.tool_call_id, e.tokens, e.seq, b.codec, b.data"
_ROWS = f"""
SELECT {_COLUMNS} FROM session_cache_sessionevent e JOIN session_cache_blob b ON b.id = e.blob_id
WHERE e.branch_id = %s AND e.seq >= %s AND e.seq <= %s ORDER BY e.seq DESC LIMIT %s
"""  # noqa: S608 - fixed names only
_CUT = """
SELECT seq FROM session_cache_sessionevent
WHERE branch_id = %s AND seq <= %s AND kind = 'compaction' ORDER BY seq DESC LIMIT 1
"""
_PACK = "SELECT first_seq, last_seq, codec, data FROM session_cache_packedhead WHERE branch_id = %s"

Row = tuple[str, str, str, str, int, int, bytes]  # event_id, kind, role, tool_call_id, tokens, seq, the content's JSON


@dataclass(frozen=True, slots=True)
class Pack:
    """The events of a stretch, notes left out, as they were packed: newest first."""

    first: int
    last: int
    rows: list[list[object]]


def last_compaction(branch: int, upto: int) -> int | None:
    """Return the number of the last compaction up to a place; one look at a partial index."""
    with connection.cursor() as cursor:
        cursor.execute(_CUT, [branch, upto])
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def raw_rows(branch: int, first: int, upto: int, *, at_once: int = ROWS_AT_ONCE) -> Iterator[Row]:
    """Yield the rows of a stretch, the newest first, with their contents as stored; so many are read at a time."""
    while upto >= first:
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, [branch, first, upto, at_once])
            rows = cursor.fetchall()
        for event_id, kind, role, call, tokens, seq, codec, data in rows:
            yield event_id, kind, role, call, tokens, seq, raw_bytes(codec, data)
        if len(rows) < at_once:
            return
        upto = rows[-1][5] - 1


def backwards(branch: int, upto: int, *, most: int | None = None) -> Iterator[tuple[WindowEvent, int]]:
    """Yield a branch's events with their numbers, from a place down to its last compaction, notes left out.

    `most` says how many the caller will take at the most, so that no more are read.
    """
    first = last_compaction(branch, upto) or 1
    pack = _find_pack(branch, first, upto) if most is None or most >= WORTH_A_PACK else None
    if pack is None:
        yield from _by_rows(branch, first, upto, most)
        return
    yield from _by_rows(branch, max(first, pack.last + 1), upto, most)
    for event_id, kind, role, call, tokens, seq, content in pack.rows:
        if first <= seq <= upto:  # type: ignore[operator]
            yield WindowEvent(event_id, kind, role, content, call, tokens), seq  # type: ignore[arg-type, misc]
    yield from _by_rows(branch, first, min(upto, pack.first - 1), most)


def _by_rows(branch: int, first: int, upto: int, most: int | None) -> Iterator[tuple[WindowEvent, int]]:
    at_once = ROWS_AT_ONCE if most is None else min(ROWS_AT_ONCE, most + 1)
    for event_id, kind, role, call, tokens, seq, content in raw_rows(branch, first, upto, at_once=at_once):
        if kind != NOTE:
            yield WindowEvent(event_id, kind, role, json.loads(str(content, "utf-8")), call, tokens), seq


def _find_pack(branch: int, first: int, upto: int) -> Pack | None:
    """Return what is packed of a branch, where some of it lies in the stretch."""
    with connection.cursor() as cursor:
        cursor.execute(_PACK, [branch])
        row = cursor.fetchone()
    if row is None or row[0] > upto or row[1] < first:
        return None
    return Pack(row[0], row[1], json.loads(str(raw_bytes(row[2], row[3]), "utf-8")))
