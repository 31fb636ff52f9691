"""Change sets that touched memories, and what exactly they changed."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Substr

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.common.keyset import count_capped
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding


def list_change_sets(
    workspace: Workspace, *, memory_id: str | None = None, action: str | None = None, binding: Binding | None = None
) -> QuerySet[ChangeSet]:
    """Change sets of a workspace, or those of one memory; a bound key sees those that touched its scope."""
    rows = ChangeSet.objects.filter(workspace=workspace).select_related("reverts")
    versions = MemoryVersion.objects.filter(workspace=workspace)
    inside = {
        f"memory__scope__{name}": getattr(binding, name)
        for name in ("agent", "user", "project")
        if getattr(binding, name, None)
    }
    if memory_id is not None or inside:
        named = {"memory__public_id": memory_id} if memory_id is not None else {}
        rows = rows.filter(pk__in=versions.filter(**named, **inside).values("change_set_id"))
    if action is not None:
        rows = rows.filter(action=action)
    return rows


def touches_more_than(workspace: Workspace, change_set_id: str, count: int) -> bool:
    """Whether taking a change set back writes more memories than that; a decay policy's concerns all of them."""
    named = {"change_set__workspace": workspace, "change_set__public_id": change_set_id}
    if count_capped(MemoryVersion.objects.filter(**named), count) > count:
        return True
    if not AuditEvent.objects.filter(**named, subject_type="decay_policy").exists():
        return False
    return count_capped(Memory.objects.filter(workspace=workspace), count) > count


@dataclass(frozen=True, slots=True)
class ChangedMemory:
    """One memory in a change set: what stood before and after (None: it was created, or redacted since)."""

    memory_id: str
    operation: str
    number: int
    before: MemoryVersion | None
    after: MemoryVersion


def list_changed_memories(change_set: ChangeSet, *, limit: int = 200) -> list[ChangedMemory]:
    """The memories of a change set with their form before and after, the first `limit` of them."""
    rows = list(MemoryVersion.objects.filter(change_set=change_set).select_related("memory").order_by("id")[:limit])
    before = Q(pk__in=[])
    for row in rows:
        before |= Q(memory_id=row.memory_id, number=row.number - 1)
    earlier = {(row.memory_id, row.number): row for row in MemoryVersion.objects.filter(before)}
    return [
        ChangedMemory(
            row.memory.public_id, row.operation, row.number, earlier.get((row.memory_id, row.number - 1)), row
        )
        for row in rows
    ]


def list_memory_ids(change_set: ChangeSet, *, limit: int) -> list[str]:
    """The ids of the memories that a change set wrote, in order, the first `limit` of them."""
    rows = MemoryVersion.objects.filter(change_set=change_set).order_by("id")
    return list(dict.fromkeys(rows.values_list("memory__public_id", flat=True)[:limit]))


def list_excerpts_of_changes(change_sets: Sequence[ChangeSet], *, characters: int = 120) -> dict[int, str]:
    """The beginning of the text that each change set wrote first, by the change set's row id; those without one are left out."""
    # One look into the index for each; a minimum by group would read all that an import of thousands wrote.
    written = MemoryVersion.objects.filter(change_set=OuterRef("pk")).order_by("id").values("pk")[:1]
    first = ChangeSet.objects.filter(pk__in=[one.pk for one in change_sets]).values_list(Subquery(written), flat=True)
    rows = MemoryVersion.objects.filter(pk__in=[pk for pk in first if pk]).annotate(
        start=Substr("content", 1, characters + 1)
    )
    return {
        row.change_set_id: row.start[:characters] + ("…" if len(row.start) > characters else "")
        for row in rows.defer("content", "facts")
        if row.start and row.change_set_id is not None
    }
