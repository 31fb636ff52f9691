"""What stands where a memory wants to go: the same text in its scope, or another one at its path. A few queries for any number."""

from collections.abc import Callable, Collection, Sequence

from memoryhub.long_term_memory.models import Memory, MemoryState
from memoryhub.long_term_memory.rows import PATHS_IN_USE, find_in_scopes

CHUNK = 400
Key = tuple[int, str]


def find_text_twins(memories: Sequence[Memory]) -> dict[int, Memory]:
    """For each memory that can't have its text in its scope, the one that has it; `identify` comes before."""
    return _find(
        [memory for memory in memories if memory.dedupe_key is not None],
        lambda memory: (memory.scope_id, memory.dedupe_key or ""),
        lambda keys: find_in_scopes(keys, "dedupe_key"),
    )


def find_path_twins(memories: Sequence[Memory]) -> dict[int, Memory]:
    """For each memory that can't have its path, the one that stands there."""
    return _find(
        [memory for memory in memories if memory.path is not None and memory.state != MemoryState.FORGOTTEN],
        lambda memory: (memory.scope_id, memory.path or ""),
        lambda keys: find_in_scopes(keys, "path", PATHS_IN_USE),
    )


def _find(
    memories: Sequence[Memory], key_of: Callable[[Memory], Key], ids_at: Callable[[Collection[Key]], list[int]]
) -> dict[int, Memory]:
    """Twins outside the batch, and within it the first of several."""
    mine = {memory.pk for memory in memories}
    first: dict[Key, Memory] = {}
    twins: dict[int, Memory] = {}
    for memory in memories:
        standing = first.setdefault(key_of(memory), memory)
        if standing is not memory:
            twins[memory.pk] = standing
    wanted = list(first.items())
    for start in range(0, len(wanted), CHUNK):
        part = dict(wanted[start : start + CHUNK])
        for row in Memory.objects.filter(pk__in=ids_at(part)).defer("content"):
            coming = part.get(key_of(row))
            if coming is not None and row.pk not in mine:
                twins[coming.pk] = row
    return twins
