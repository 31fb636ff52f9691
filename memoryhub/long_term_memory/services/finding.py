"""Loading the memories that a write is about: by workspace, id and the key's binding, locked where the database locks rows."""

from collections.abc import Sequence

from django.db import connection

from memoryhub.long_term_memory.models import Memory, MemoryState
from memoryhub.long_term_memory.services.writer import ChangedMeanwhile, UnknownMemory, Writer


def find_memory(writer: Writer, memory_id: str, *, in_trash: bool = False) -> Memory:
    """Return one memory for writing; raises UnknownMemory where it is not there, in the trash, or out of reach."""
    found = find_memories(writer, [memory_id], in_trash=in_trash)
    if not found:
        raise UnknownMemory(f"There is no memory {memory_id[:80]} here.")
    return found[0]


def find_memories(writer: Writer, memory_ids: Sequence[str], *, in_trash: bool = False) -> list[Memory]:
    """Return those of the memories that the writer may change, by row id."""
    rows = Memory.objects.filter(workspace=writer.workspace, public_id__in=memory_ids).select_related("scope")
    if not in_trash:
        rows = rows.exclude(state=MemoryState.FORGOTTEN)
    binding = writer.binding
    for name in ("agent", "user", "project"):
        bound = getattr(binding, name)
        if bound:
            rows = rows.filter(**{f"scope__{name}": bound})
    if connection.features.has_select_for_update and connection.in_atomic_block:
        rows = rows.select_for_update(of=("self",))
    return list(rows.order_by("id"))


def expect(memory: Memory, version: int | None, sha256: str | None = None) -> None:
    """Raise ChangedMeanwhile unless the memory is as the caller saw it; None expects nothing."""
    if version is not None and memory.version != version:
        raise ChangedMeanwhile(
            f"You saw version {version}; the current one is {memory.version}.", current=memory.version
        )
    if sha256 is not None and memory.content_sha256 != sha256:
        raise ChangedMeanwhile("The content is not the one you saw.", current=memory.version)


def closes_circle(old: int, new: int) -> bool:
    """Whether the memory `old` stands in the place of `new` already, by any number of steps (both are row ids)."""
    at: int | None = new
    while at is not None:
        if at == old:
            return True
        at = Memory.objects.filter(pk=at).values_list("superseded_by_id", flat=True).first()
    return False
