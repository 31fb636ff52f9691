"""Removing entries in sets, with the accounting of their spaces; the caller holds the transaction."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memoryhub.common import clock
from memoryhub.session_cache.models import ToolDependency, ToolKey, ToolResult, ToolSpace

_CHUNK = 900


@dataclass(frozen=True, slots=True)
class Doomed:
    """What has to be known of an entry to remove it."""

    pk: int
    space_id: int
    key: str
    size_bytes: int


def doomed(rows: Iterable[tuple[int, int, str, int]]) -> list[Doomed]:
    """Return rows of (id, space, key, size) as entries to remove."""
    return [Doomed(*row) for row in rows]


def remove_entries(*, workspace_id: int, entries: Sequence[Doomed], gone: str) -> int:
    """Remove these entries and remember why they are gone; return how many were still there.

    Their spaces are locked first, in one order, so that two removals never wait for each other.
    """
    if not entries:
        return 0
    spaces = {entry.space_id for entry in entries}
    list(ToolSpace.objects.select_for_update().filter(pk__in=spaces).order_by("pk").values_list("pk", flat=True))
    removed = 0
    for start in range(0, len(entries), _CHUNK):
        removed += _remove_chunk(workspace_id, entries[start : start + _CHUNK], gone)
    return removed


def _remove_chunk(workspace_id: int, entries: Sequence[Doomed], gone: str) -> int:
    wanted = [entry.pk for entry in entries]
    living = set(ToolResult.objects.filter(pk__in=wanted).values_list("pk", flat=True))
    dying = [entry for entry in entries if entry.pk in living]
    ToolDependency.objects.filter(result_id__in=living).delete()
    ToolResult.objects.filter(pk__in=living)._raw_delete(using="default")
    freed: Counter[int] = Counter()
    counts: Counter[int] = Counter()
    for entry in dying:
        freed[entry.space_id] += entry.size_bytes
        counts[entry.space_id] += 1
    for space in ToolSpace.objects.filter(pk__in=list(counts)):
        space.used_bytes -= freed[space.pk]
        space.entry_count -= counts[space.pk]
        space.save(update_fields=["used_bytes", "entry_count"])
    if gone:
        remember_gone(workspace_id=workspace_id, keys=[entry.key for entry in dying], gone=gone)
    return len(dying)


def remember_gone(*, workspace_id: int, keys: Sequence[str], gone: str) -> None:
    """Note for each key why its entry is gone; the next look-up says so."""
    now = clock.now()
    ToolKey.objects.bulk_create(
        [ToolKey(workspace_id=workspace_id, key=key, gone=gone, updated_at=now) for key in keys],
        update_conflicts=True,
        unique_fields=["workspace", "key"],
        update_fields=["gone", "updated_at"],
    )
