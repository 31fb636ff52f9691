"""Reading documents into the columns that ranking works on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from django.db import connection

from memoryhub.long_term_memory.domain.ranking import Pool
from memoryhub.long_term_memory.search.base import Where
from memoryhub.long_term_memory.search.embedders import unit

TABLE = "long_term_memory_searchdocument"
_FACTS = (
    "d.key, COALESCE(d.session_id, 0), d.created, d.importance, d.daily_loss, d.floor, d.idle_since, d.access_count, "
    "d.rating, d.word_count, d.token_count, d.is_question, d.has_context"
)
_TEXT = ", d.terms, d.counts"
_VECTOR = ", CASE WHEN d.model_id = %s THEN d.vector END"
_CHUNK = 800  # keys in one statement


class Row(NamedTuple):
    """One document as it is read, in the order of the columns above."""

    key: int
    session: int
    created: float
    importance: float
    daily_loss: float
    floor: float
    idle_since: float
    access_count: int
    rating: int
    word_count: int
    token_count: float
    is_question: bool
    has_context: bool
    terms: bytes
    counts: bytes
    vector: bytes | None = None


def load_where(where: Where, *, text: bool, model_id: int | None, extra: Sequence[Row] = ()) -> Pool:
    """All documents that pass a condition, and the rows that are given beside them."""
    return _pool([*_fetch(where, text, model_id), *extra], text, model_id)


def fetch_keys(keys: Sequence[int], *, model_id: int | None) -> list[Row]:
    """These documents as rows."""
    rows: list[Any] = []
    for start in range(0, len(keys), _CHUNK):
        chunk = list(keys[start : start + _CHUNK])
        rows += _fetch(Where(f"d.key IN ({', '.join(['%s'] * len(chunk))})", chunk), True, model_id)
    return [Row(*row) for row in rows]


def load_keys(keys: Sequence[int], *, where: Where, model_id: int | None, extra: Sequence[Row] = ()) -> Pool:
    """These documents, as far as they pass the condition, and the rows that are given beside them."""
    rows: list[Any] = list(extra)
    for start in range(0, len(keys), _CHUNK):
        chunk = list(keys[start : start + _CHUNK])
        listed = Where(f"d.key IN ({', '.join(['%s'] * len(chunk))})", chunk)
        rows += _fetch(listed & where, True, model_id)
    return _pool(rows, True, model_id)


def _fetch(where: Where, text: bool, model_id: int | None) -> list[Any]:
    columns = _FACTS + (_TEXT if text else "") + (_VECTOR if text and model_id else "")
    values = ([model_id] if text and model_id else []) + where.values
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {TABLE} d WHERE {where.sql}", values)  # noqa: S608
        return cursor.fetchall()


def _pool(rows: list[Any], text: bool, model_id: int | None) -> Pool:
    """Columns from rows, ordered so that a session's memories stand together as they were made."""
    facts = np.array([row[:13] for row in rows], dtype=np.float64).reshape(-1, 13)
    keys = np.array([row[0] for row in rows], dtype=np.int64)  # a float would round them
    order = np.lexsort((keys, facts[:, 2], facts[:, 1]))
    facts, keys = facts[order], keys[order]
    ordered = [rows[index] for index in order]
    blobs = [bytes(row[13]) for row in ordered] if text else []
    sizes = np.array([len(blob) // 4 for blob in blobs], dtype=np.int64)
    vectors, has_vector = _vectors(ordered) if text and model_id else (None, None)
    return Pool(
        keys=keys,
        sessions=facts[:, 1].astype(np.int64),
        created=facts[:, 2],
        importance=facts[:, 3],
        daily_loss=facts[:, 4],
        floor=facts[:, 5],
        idle_since=facts[:, 6],
        access_count=facts[:, 7],
        rating=facts[:, 8],
        word_count=facts[:, 9],
        token_count=facts[:, 10],
        is_question=facts[:, 11].astype(bool),
        has_context=facts[:, 12].astype(bool),
        terms=np.frombuffer(b"".join(blobs), dtype=np.uint32),
        counts=np.frombuffer(b"".join([bytes(row[14]) for row in ordered]) if text else b"", dtype=np.uint8).reshape(
            -1, 3
        ),
        owners=np.repeat(np.arange(len(blobs)), sizes),
        vectors=vectors,
        has_vector=has_vector,
    )


def _vectors(rows: list[Any]) -> tuple[Any, Any]:
    """Unit float32 vectors from their int8 form; rows without one, or with one of another size, are zero."""
    packed = [bytes(row[15]) if row[15] is not None else b"" for row in rows]
    sizes = np.array([len(blob) for blob in packed])
    if not sizes.any():
        return None, None
    size = int(np.bincount(sizes[sizes > 0]).argmax())
    has_vector = sizes == size
    blank = bytes(size)
    joined = b"".join([blob if len(blob) == size else blank for blob in packed])
    matrix = np.frombuffer(joined, dtype=np.int8).reshape(len(rows), size).astype(np.float32)
    return unit(matrix), has_vector
