"""What is stored already that a new memory could collide with."""

from collections.abc import Sequence
from typing import Any, Protocol

from memoryhub.long_term_memory.models import (
    Memory,
    MemoryState,
    Scope,
)
from memoryhub.long_term_memory.rows import PATHS_IN_USE, TEXTS_IN_TRASH, find_in_scopes
from memoryhub.long_term_memory.services.places import PathBlocked, check_place, parents_of
from memoryhub.long_term_memory.services.preparing import Prepared
from memoryhub.long_term_memory.services.writer import (
    InvalidMemory,
    PathTaken,
    Remembered,
)
from memoryhub.workspaces.models import Workspace


class Standing(Protocol):
    """A memory that stands already, or that this batch has just made."""

    @property
    def scope_id(self) -> int: ...
    @property
    def public_id(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def path(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def trust(self) -> str: ...
    @property
    def version(self) -> int: ...


class Known:
    """What the workspace holds already that a draft could collide with: loaded once, kept current within the batch."""

    CHUNK = 400

    def __init__(
        self,
        workspace: Workspace,
        prepared: Sequence[Prepared],
        scopes: dict[Any, Scope],
        *,
        imported: bool,
    ) -> None:
        self.imported = imported
        self.by_text: dict[tuple[int, str], Standing] = {}
        self.by_path: dict[tuple[int, str], Standing] = {}
        self.by_id: dict[str, Standing] = {}
        self.directories: dict[tuple[int, str], Standing] = {}  # made by this batch: a file below each
        self.forgotten: dict[tuple[int, str], str] = {}
        rows = Memory.objects.filter(workspace=workspace)
        for start in range(0, len(prepared), self.CHUNK):
            part = prepared[start : start + self.CHUNK]
            drafts = [c.draft for c in part]
            texts = {(scopes[c.draft.scope].pk, c.key) for c in part if c.draft.path is None}
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
                self._load_forgotten({(scopes[c.draft.scope].pk, c.content_sha256) for c in part})

    def _load_forgotten(self, hashes: set[tuple[int, str]]) -> None:
        if found := find_in_scopes(hashes, "content_sha256", TEXTS_IN_TRASH):
            # By ids alone: asked for the workspace's forgotten ones, SQLite would walk all of its trash.
            trash = Memory.objects.filter(pk__in=found, state=MemoryState.FORGOTTEN)
            self.forgotten |= {
                (scope_id, sha): public_id
                for scope_id, sha, public_id in trash.values_list("scope_id", "content_sha256", "public_id")
            }

    def twin_of(self, c: Prepared, scope: Scope) -> Standing | Remembered | None:
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
        return self.by_text.get((scope.pk, c.key))

    def _blocked(self, c: Prepared, scope: Scope, path: str) -> Remembered | None:
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

    def _same_or_conflict(self, standing: Standing, c: Prepared, what: str) -> Standing | Remembered:
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

    def add(self, standing: Standing, c: Prepared) -> None:
        """Take note of what this batch made of a draft."""
        scope_id, path = standing.scope_id, c.draft.path
        self.by_id[standing.public_id] = standing
        if c.draft.state == MemoryState.FORGOTTEN:
            return
        if path is None:
            self.by_text[scope_id, c.key] = standing
        else:
            self.by_path[scope_id, path] = standing
            self.directories |= {(scope_id, part): standing for part in parents_of(path)}
