"""Long-term memory out into a file of any format the hub reads, streamed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.db.models import F

from memoryhub.common import errors
from memoryhub.interchange import markdown
from memoryhub.interchange.formats import DEFAULT_FORMAT, Format, UnknownFormat, get_format
from memoryhub.interchange.record import MemoryRecord
from memoryhub.interchange.times import write_time
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries.memories import MemoryFilter, list_memories, tag_names
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding

CHUNK = 500


class UnknownExportFormat(errors.Invalid):
    slug = "unknown-format"
    title = "Unknown format"


def find_format(name: str = DEFAULT_FORMAT) -> Format:
    """The format of this name; raises UnknownExportFormat."""
    try:
        return get_format(name)
    except UnknownFormat as error:
        raise UnknownExportFormat(f"{error}.") from error


def export_memories(
    *,
    workspace: Workspace,
    format: Format,
    wanted: MemoryFilter | None = None,
    binding: Binding | None = None,
    with_versions: bool = False,
) -> Iterator[str]:
    """The memories that pass a filter, in the order in which they came, as pieces of text. The trash stays here."""
    records = list_records(
        workspace=workspace, wanted=wanted or MemoryFilter(), binding=binding, with_versions=with_versions
    )
    return format.write(records)


def list_records(
    *, workspace: Workspace, wanted: MemoryFilter, binding: Binding | None = None, with_versions: bool = False
) -> Iterator[MemoryRecord]:
    """One record for each memory, read in chunks."""
    rows = list_memories(workspace, wanted, binding=binding).select_related("origin").order_by("id")
    after = 0
    while chunk := list(rows.filter(pk__gt=after)[:CHUNK]):
        versions = _versions(chunk) if with_versions else {}
        for memory in chunk:
            yield _record(memory, versions.get(memory.pk, ()))
        after = chunk[-1].pk


def export_folder(*, workspace: Workspace, folder: Path, wanted: MemoryFilter | None = None) -> int:
    """Each memory as a note in a folder, at its path or by its id; returns how many. Files there are not overwritten."""
    count = 0
    for record in list_records(workspace=workspace, wanted=wanted or MemoryFilter()):
        place = (record.path or f"/{record.public_id}").lstrip("/")
        if not place.lower().endswith(markdown.SUFFIXES):
            place += ".md"
        target = (folder / place).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise errors.Invalid(f"{place} lies outside the folder.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="") as file:
            file.write(markdown.write_note(record))
        count += 1
    return count


def _record(memory: Memory, versions: tuple[dict[str, Any], ...]) -> MemoryRecord:
    scope = memory.scope.as_dict()
    origin = getattr(memory, "origin", None)
    return MemoryRecord(
        content=memory.content,
        public_id=memory.public_id,
        agent=scope["agent"],
        user=scope["user"],
        project=scope["project"],
        session=memory.session.sid if memory.session else None,
        event=memory.event_id or None,
        subject=memory.subject,
        kind=memory.kind,
        importance=memory.importance,
        tags=tuple(tag_names(memory)),
        pinned=memory.pinned,
        path=memory.path,
        state=memory.state,
        trust=memory.trust,
        created_at=memory.created_at,
        content_changed_at=memory.content_changed_at,
        metadata_changed_at=memory.metadata_changed_at,
        last_accessed_at=memory.last_accessed_at,
        access_count=memory.access_count,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        expires_at=memory.expires_at,
        superseded_by=memory.superseded_by.public_id if memory.superseded_by else None,
        origin=origin.data if origin else None,
        versions=versions,
    )


def _versions(memories: list[Memory]) -> dict[int, tuple[dict[str, Any], ...]]:
    """The earlier forms of each memory, oldest first; the current one is the record itself."""
    rows = MemoryVersion.objects.filter(memory__in=memories, number__lt=F("memory__version")).order_by("number")
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.memory_id, []).append(
            {
                "version": row.number,
                "operation": row.operation,
                "content": row.content,
                "actor": row.actor_label,
                "reason": row.reason,
                "created_at": write_time(row.created_at),
                "redacted_at": write_time(row.redacted_at),
            }
        )
    return {pk: tuple(items) for pk, items in found.items()}
