"""How far transcript files have been read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from memoryhub.common import clock
from memoryhub.prompt_cache.models import TranscriptFile
from memoryhub.prompt_cache.services.rows import upsert
from memoryhub.prompt_cache.transcript_reader import FoundFile
from memoryhub.workspaces.models import Workspace

_PATHS_PER_QUERY = 500


def known_positions(*, workspace: Workspace, files: Sequence[FoundFile]) -> dict[str, TranscriptFile]:
    """What the hub remembers of these files, by path."""
    known: dict[str, TranscriptFile] = {}
    for start in range(0, len(files), _PATHS_PER_QUERY):
        some = {path_sha256(file.path): file.path for file in files[start : start + _PATHS_PER_QUERY]}
        for row in TranscriptFile.objects.filter(workspace=workspace, path_sha256__in=list(some)):
            known[some[row.path_sha256]] = row
    return known


def save_positions(*, workspace: Workspace, positions: Sequence[TranscriptFile]) -> None:
    """Remember how far these files were read."""
    now = clock.now()
    rows = [
        {
            "workspace_id": workspace.pk,
            "path_sha256": position.path_sha256,
            "path": position.path,
            "size": position.size,
            "mtime_ns": position.mtime_ns,
            "offset": position.offset,
            "line_count": position.line_count,
            "sample_sha256": position.sample_sha256,
            "with_events": position.with_events,
            "memory": position.memory,
            "imported_at": now,
        }
        for position in positions
    ]
    upsert(TranscriptFile, rows, unique=("workspace_id", "path_sha256"))


def path_sha256(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()
