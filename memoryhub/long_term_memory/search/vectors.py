"""Nearest documents by meaning in selections that are too large to be read whole.

The vectors of a workspace are mapped from one file beside the data, ordered by key, and scanned by usearch's SIMD
kernels; a job rebuilds the file from the rows when it falls behind. Documents that are newer than the file are found
by their words meanwhile. Small selections never come here: their vectors are read with their rows.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from django.conf import settings
from django.db import connection

from memoryhub.long_term_memory.models import MEMORY_MASK, SCOPE_SHIFT

Vector = npt.NDArray[np.float32]
TABLE = "long_term_memory_searchdocument"
BLOCK = 20_000  # rows read at a time

_mapped: dict[tuple[int, int], tuple[tuple[int, int], Any]] = {}
_lock = threading.Lock()


def nearest(workspace_id: int, model_id: int, query: Vector, scope_ids: Sequence[int] | None, limit: int) -> list[int]:
    """Keys of the documents that lie nearest to the query, as far as the file reaches."""
    records = _open(workspace_id, model_id, len(query))
    if records is None:
        return []
    peak = float(np.abs(query).max()) or 1.0
    packed = np.rint(query * (127.0 / peak)).astype(np.int8)
    if scope_ids is None:
        return _scan(records, packed, limit)
    found: list[int] = []
    for scope_id in scope_ids:  # keys are sorted, so a scope is one slice
        bounds = [scope_id << SCOPE_SHIFT, (scope_id << SCOPE_SHIFT | MEMORY_MASK) + 1]
        low, high = np.searchsorted(records["key"], bounds).tolist()
        found += _scan(records[low:high], packed, limit)
    return found


def _scan(records: Any, query: npt.NDArray[np.int8], limit: int) -> list[int]:
    import onnxruntime  # noqa: F401 - loaded after usearch, it crashes the process; before, both are well
    from usearch.index import MetricKind, search  # late: only large workspaces need it

    if not len(records):
        return []
    matches = search(records["vector"], query, min(limit, len(records)), MetricKind.Cos, exact=True, threads=2)
    return [int(key) for key in records["key"][np.asarray(matches.keys)]]


def _path(workspace_id: int, model_id: int) -> Path:
    folder = Path(settings.DATA_DIR) / "vectors"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / f"{workspace_id}-{model_id}.vectors"


def _record(dimensions: int) -> np.dtype[Any]:
    return np.dtype([("key", "<i8"), ("vector", "i1", (dimensions,))])


def _open(workspace_id: int, model_id: int, dimensions: int) -> Any:
    """Map the file of a workspace; a newer file replaces the mapping."""
    path = _path(workspace_id, model_id)
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    stamp = (stat.st_mtime_ns, stat.st_size)
    record = _record(dimensions)
    if not stat.st_size or stat.st_size % record.itemsize:
        return None
    with _lock:
        held = _mapped.get((workspace_id, model_id))
        if held is None or held[0] != stamp:
            held = _mapped[workspace_id, model_id] = (stamp, np.memmap(path, dtype=record, mode="r"))
        return held[1]


def count_in_file(workspace_id: int, model_id: int, dimensions: int) -> int:
    """How many vectors the file holds."""
    records = _open(workspace_id, model_id, dimensions)
    return 0 if records is None else len(records)


def rebuild_file(workspace_id: int, model_id: int, dimensions: int) -> int:
    """Write a workspace's vectors, ordered by key, to its file; returns how many."""
    path = _path(workspace_id, model_id)
    draft = path.with_suffix(".draft")
    last, count = -1, 0
    with draft.open("wb") as file:
        while rows := _read_block(workspace_id, model_id, last):
            last = rows[-1][0]
            fitting = [(key, vector) for key, vector in rows if len(vector) == dimensions]
            file.write(b"".join(key.to_bytes(8, "little", signed=True) + vector for key, vector in fitting))
            count += len(fitting)
    draft.replace(path)
    return count


def drop_files(workspace_id: int) -> bool:
    """Remove a workspace's files, since what was erased must not stay in them; True where there were any."""
    found = list((Path(settings.DATA_DIR) / "vectors").glob(f"{workspace_id}-*"))
    for path in found:
        path.unlink(missing_ok=True)
    return bool(found)


def _read_block(workspace_id: int, model_id: int, after: int) -> list[tuple[int, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT d.key, d.vector FROM {TABLE} d WHERE d.key > %s AND d.workspace_id = %s AND d.model_id = %s "  # noqa: S608
            "AND d.vector IS NOT NULL ORDER BY d.key LIMIT %s",
            [after, workspace_id, model_id, BLOCK],
        )
        return [(key, bytes(vector)) for key, vector in cursor.fetchall()]
