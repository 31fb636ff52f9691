"""What the pages show of memories: rows with an excerpt instead of the whole text, and the figures above the list."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models.functions import Substr

from memoryhub.common.keyset import COUNT_CAP
from memoryhub.long_term_memory.models import Memory, MemoryQuerySet, MemoryState, ReviewItem, ReviewState
from memoryhub.long_term_memory.queries.memories import (
    MemoryFilter,
    count_capped,
    filter_memories,
    find_memories,
    with_details,
)
from memoryhub.long_term_memory.queries.recall import checked, get_default_weights
from memoryhub.long_term_memory.search import documents, engine
from memoryhub.long_term_memory.search.request import INCLUDES, SEARCHABLE_STATES, SearchRequest
from memoryhub.workspaces.models import Workspace

EXCERPT_CHARS = 280  # three lines of a wide table; a memory may be 100 KiB
FADING_SOON = timedelta(days=7)
NEWEST_SEARCHED = 2000  # by what is typed into the palette
FOUND_MAX = 200  # hits that a search on the list page shows


@dataclass(frozen=True, slots=True)
class ListSummary:
    """The figures above the list, each counted up to the cap."""

    alive: int
    fading_soon: int
    in_review: int


def load_excerpts(pks: Sequence[int]) -> dict[int, Memory]:
    """Memories by their rows' numbers, each with an `excerpt`; the text itself stays in the database until asked for."""
    return _as_excerpts(Memory.objects.all()).in_bulk(pks)


def _as_excerpts(rows: MemoryQuerySet) -> MemoryQuerySet:
    rows = with_details(rows).defer("content", "superseded_by__content")
    return rows.annotate(excerpt=Substr("content", 1, EXCERPT_CHARS + 1))


def list_excerpts_by_rank(workspace: Workspace, ids: list[str]) -> list[Memory]:
    """The excerpts of these memories in the given order; what is gone meanwhile is left out."""
    found = {
        memory.public_id: memory
        for memory in _as_excerpts(Memory.objects.filter(workspace=workspace, public_id__in=ids))
    }
    return [found[public_id] for public_id in ids if public_id in found]


def summarize_list(workspace: Workspace, now: datetime) -> ListSummary:
    """How many are alive (active or fading), fade within a week, and wait for a person."""
    rows = Memory.objects.filter(workspace=workspace)
    return ListSummary(
        alive=count_alive(workspace),
        fading_soon=count_capped(rows.filter(fades_at__lt=now + FADING_SOON)),  # only active ones have that moment
        in_review=count_capped(ReviewItem.objects.filter(workspace=workspace, state=ReviewState.OPEN)),
    )


@dataclass(frozen=True, slots=True)
class Found:
    """The ids that a search on the list page found, best first, and what to tell about it."""

    ids: list[str]
    notes: list[str]


def find_ids(workspace: Workspace, query: str, wanted: MemoryFilter, now: datetime) -> Found:
    """Search inside a filter. People look for everything that is kept: also archived, superseded and quarantined."""
    searchable = [state for state in wanted.states if state in SEARCHABLE_STATES]
    if wanted.states and not searchable:  # the trash is not indexed: there, a part of the text is looked for
        rows = filter_memories(workspace, replace(wanted, text=query)).order_by("-content_changed_at", "-id")
        return Found(list(rows.values_list("public_id", flat=True)[:FOUND_MAX]), [])
    request = SearchRequest(
        query=query,
        scope=wanted.scope,
        tags=wanted.tags,
        kinds=wanted.kinds,
        states=searchable,
        session=wanted.session,
        since=wanted.since,
        until=wanted.until,
        limit=FOUND_MAX,
        weights=get_default_weights(workspace),
        include=INCLUDES,
    )
    ranking = engine.rank(workspace, checked(request, None), now)
    keys = [int(ranking.pool.keys[row]) for row in ranking.best(FOUND_MAX, request.weights)]
    pks = [documents.memory_id_of(key) for key in keys]
    ids = dict(Memory.objects.filter(pk__in=pks).values_list("pk", "public_id"))
    inside = filter_memories(workspace, replace(wanted, ids=list(ids.values())))
    passing = set(inside.values_list("pk", flat=True))
    return Found([ids[pk] for pk in pks if pk in passing], ranking.notes)


def count_up_to(workspace: Workspace, wanted: MemoryFilter, cap: int) -> int:
    """How many memories pass a filter; one more than the cap stands for more."""
    return count_capped(filter_memories(workspace, wanted), cap)


def list_newest(workspace: Workspace, wanted: MemoryFilter, limit: int) -> list[Memory]:
    """A few of the memories that pass a filter, the newest first."""
    newest = find_memories(workspace, wanted).order_by("-content_changed_at", "-id").values_list("pk", flat=True)
    pks = list(newest[:limit])
    found = load_excerpts(pks)
    return [found[pk] for pk in pks if pk in found]


def count_alive(workspace: Workspace) -> int:
    """How many memories are active or fading, counted up to the cap."""
    return count_capped(Memory.objects.filter(workspace=workspace, state__in=[MemoryState.ACTIVE, MemoryState.FADING]))


def count_new(workspace: Workspace, since: datetime) -> int:
    """How many memories were made since then, counted up to the cap."""
    return count_capped(Memory.objects.filter(workspace=workspace, created_at__gte=since))


def has_any(workspace: Workspace) -> bool:
    """Whether the workspace holds any memory at all."""
    return Memory.objects.filter(workspace=workspace).exists()


def is_larger_than(workspace: Workspace, count: int) -> bool:
    """Whether the workspace holds more memories than that, those in the trash included."""
    return count_capped(Memory.objects.filter(workspace=workspace), count) > count


def find_by_text(workspace: Workspace, typed: str, *, limit: int) -> list[Memory]:
    """The last changed memories that hold what was typed, among the newest NEWEST_SEARCHED."""
    rows = Memory.objects.filter(workspace=workspace)
    newest = rows.order_by("-content_changed_at", "-id").values("pk")[:NEWEST_SEARCHED]
    found = Memory.objects.out_of_trash().filter(content__icontains=typed, pk__in=newest)
    return list(found.order_by("-content_changed_at", "-id")[:limit])


def count_by_strength(workspace: Workspace, wanted: MemoryFilter, *, bins: int = 20) -> list[tuple[float, int]]:
    """How many of the matching memories lie in each band of strength, (lower edge, count); of the newest up to the cap."""
    rows = filter_memories(workspace, wanted).order_by("-content_changed_at", "-id")
    counts = [0] * bins
    for strength in rows.values_list("strength", flat=True)[:COUNT_CAP]:
        counts[min(bins - 1, max(0, int(strength * bins)))] += 1
    return [(index / bins, count) for index, count in enumerate(counts)]
