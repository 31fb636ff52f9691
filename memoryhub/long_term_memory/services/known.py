"""What is stored already that a new memory could collide with."""

from collections.abc import Sequence
from typing import Any

from memoryhub.long_term_memory.domain import duplicates
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryState,
    Scope,
)
from memoryhub.long_term_memory.rows import PATHS_IN_USE, TEXTS_IN_TRASH, find_in_scopes
from memoryhub.long_term_memory.services.drafting import Checked
from memoryhub.long_term_memory.services.places import PathBlocked, check_place, parents_of
from memoryhub.long_term_memory.services.writer import (
    InvalidMemory,
    PathTaken,
    Remembered,
)
from memoryhub.workspaces.models import Workspace


class Known:
    """What the workspace holds already that a draft could collide with: loaded once, kept current within the batch."""

    CHUNK = 400

    def __init__(
        self,
        workspace: Workspace,
        checked: Sequence[Checked],
        scopes: dict[Any, Scope],
        keys: dict[int, str],
        *,
        imported: bool,
    ) -> None:
        self.imported = imported
        self.by_text: dict[tuple[int, str], Memory] = {}
        self.by_path: dict[tuple[int, str], Memory] = {}
        self.by_id: dict[str, Memory] = {}
        self.directories: dict[tuple[int, str], Memory] = {}  # made by this batch: a file below each
        self.forgotten: dict[tuple[int, str], str] = {}
        rows = Memory.objects.filter(workspace=workspace)
        places = list(range(len(checked)))
        for start in range(0, len(places), self.CHUNK):
            part = places[start : start + self.CHUNK]
            drafts = [checked[place].draft for place in part]
            texts = {
                (scopes[checked[place].draft.scope].pk, keys[place])
                for place in part
                if checked[place].draft.path is None
            }
            if found := find_in_scopes(texts, "dedupe_key"):
                for memory in rows.filter(pk__in=found).select_related("scope"):
                    self.by_text[memory.scope_id, memory.dedupe_key or ""] = memory
            paths = {(scopes[draft.scope].pk, draft.path) for draft in drafts if draft.path}
            if found := find_in_scopes(paths, "path", PATHS_IN_USE):
                for memory in rows.filter(pk__in=found):
                    self.by_path[memory.scope_id, memory.path or ""] = memory
            public_ids = [draft.public_id for draft in drafts if draft.public_id]
            if public_ids:
                self.by_id |= {memory.public_id: memory for memory in rows.filter(public_id__in=public_ids)}
            if not imported:
                self._load_forgotten(
                    {(scopes[draft.scope].pk, duplicates.content_sha256(draft.content)) for draft in drafts}
                )

    def _load_forgotten(self, hashes: set[tuple[int, str]]) -> None:
        if found := find_in_scopes(hashes, "content_sha256", TEXTS_IN_TRASH):
            # By ids alone: asked for the workspace's forgotten ones, SQLite would walk all of its trash.
            trash = Memory.objects.filter(pk__in=found, state=MemoryState.FORGOTTEN)
            self.forgotten |= {
                (scope_id, sha): public_id
                for scope_id, sha, public_id in trash.values_list("scope_id", "content_sha256", "public_id")
            }

    def twin_of(self, c: Checked, scope: Scope, key: str) -> Memory | Remembered | None:
        """The stored memory that a draft repeats, a conflict, or None for a new one."""
        draft = c.draft
        if draft.public_id and draft.public_id in self.by_id:
            return self._same_or_conflict(self.by_id[draft.public_id], c, "id")
        if draft.path is not None:
            standing = self.by_path.get((scope.pk, draft.path))
            if standing is None:
                return self._blocked(c, scope, draft.path)
            if not self.imported:
                raise PathTaken(
                    f"There is a memory at {draft.path} already.",
                    conflicting_id=standing.public_id,
                    conflicting_path=draft.path,
                )
            return self._same_or_conflict(standing, c, "path")
        if draft.state == MemoryState.FORGOTTEN:
            return None
        return self.by_text.get((scope.pk, key))

    def _blocked(self, c: Checked, scope: Scope, path: str) -> Remembered | None:
        """A conflict where a file or directory is in the way of a new path."""
        if c.draft.state == MemoryState.FORGOTTEN:
            return None
        in_batch = next(
            (self.by_path[at] for part in parents_of(path) if (at := (scope.pk, part)) in self.by_path), None
        )
        try:
            if in_batch is not None:
                raise PathBlocked(f"{in_batch.path} is a file.", conflicting_id=in_batch.public_id)
            below = self.directories.get((scope.pk, path))
            if below is not None:
                raise PathTaken(
                    f"There is a directory at {path} already.",
                    conflicting_id=below.public_id,
                    conflicting_path=below.path,
                )
            check_place(scope, path)
        except (PathBlocked, PathTaken) as error:
            if not self.imported:
                raise
            return Remembered(outcome="conflict", id=error.extra["conflicting_id"], detail=error.detail)
        return None

    def _same_or_conflict(self, standing: Memory, c: Checked, what: str) -> Memory | Remembered:
        if standing.content == c.draft.content:
            return standing
        if not self.imported:
            raise InvalidMemory(f"The {what} {c.draft.public_id} is taken by another memory.")
        return Remembered(
            outcome="conflict",
            id=standing.public_id,
            state=standing.state,
            version=standing.version,
            detail=f"the {what} is taken by another text",
        )

    def add(self, memory: Memory, key: str) -> None:
        if memory.dedupe_key is not None:
            self.by_text[memory.scope_id, key] = memory
        if memory.path is not None and memory.state != MemoryState.FORGOTTEN:
            self.by_path[memory.scope_id, memory.path] = memory
            self.directories |= {(memory.scope_id, part): memory for part in parents_of(memory.path)}
        self.by_id[memory.public_id] = memory
