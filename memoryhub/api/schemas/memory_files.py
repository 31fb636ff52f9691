"""Shapes of imports and of memories that are addressed like files."""

from typing import Any

from ninja import Schema
from pydantic import Field

from memoryhub.api.schemas.base import InShape, UtcTime
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory


class SkippedOut(Schema):
    line: int
    reason: str
    file: str | None = None


class ConflictOut(Schema):
    line: int
    id: str
    reason: str


class ImportOut(Schema):
    format: str
    dry_run: bool
    created: int
    deduplicated: int
    conflicts: int
    conflict_items: list[ConflictOut]
    skipped: list[SkippedOut]
    skipped_count: int
    change_set: str | None

    model_config = {
        "json_schema_extra": {
            "example": {
                "format": "seed",
                "dry_run": False,
                "created": 50,
                "deduplicated": 2,
                "conflicts": 0,
                "conflict_items": [],
                "skipped": [{"line": 51, "reason": "broken JSON", "file": None}],
                "skipped_count": 1,
                "change_set": "chg_01jd",
            }
        }
    }


class FileScopeIn(InShape):
    agent: str | None = None
    user: str | None = None
    project: str | None = None

    def names(self) -> ScopeNames:
        return ScopeNames(self.agent or None, self.user or None, self.project or None)


class FileIn(InShape):
    path: str = Field(max_length=4096, examples=["/memories/notes.md"])
    content: str
    scope: FileScopeIn = Field(default_factory=FileScopeIn)


class RenameIn(InShape):
    source: str = Field(alias="from", max_length=4096, examples=["/memories/drafts"])
    target: str = Field(alias="to", max_length=4096, examples=["/memories/done"])
    scope: FileScopeIn = Field(default_factory=FileScopeIn)


class FileOut(Schema):
    """A file; `content` is left out of lists."""

    id: str
    path: str
    version: int
    size_bytes: int
    content_sha256: str
    created_at: UtcTime
    updated_at: UtcTime
    content: str | None = None

    @staticmethod
    def of(memory: Memory, *, with_content: bool = True) -> "FileOut":
        size: Any = getattr(memory, "size_bytes", None)
        return FileOut(
            id=memory.public_id,
            path=memory.path or "",
            version=memory.version,
            size_bytes=len(memory.content.encode()) if size is None else size,
            content_sha256=memory.content_sha256,
            created_at=memory.created_at,
            updated_at=max(memory.content_changed_at, memory.metadata_changed_at),
            content=memory.content if with_content else None,
        )


class FilePage(Schema):
    items: list[FileOut]
    next_cursor: str | None


class RenamedOut(Schema):
    renamed: int


class ForgottenOut(Schema):
    forgotten: int
