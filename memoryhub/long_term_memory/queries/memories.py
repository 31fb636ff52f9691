"""Reading memories: lists with filters and orders, one memory with its history, counts for facets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Substr

from memoryhub.common import errors
from memoryhub.common.keyset import COUNT_CAP, count_capped
from memoryhub.long_term_memory.domain.scoping import ANYWHERE, ScopeClash, ScopeNames
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryQuerySet,
    MemoryState,
    MemoryStore,
    MemoryTag,
    MemoryVersion,
    RecalledMemory,
    Scope,
    Tag,
)
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding

# order name -> keyset fields, all indexed with the workspace in front
ORDERS: dict[str, list[tuple[str, str]]] = {
    "recency": [("content_changed_at", "desc"), ("id", "desc")],
    "created": [("created_at", "desc"), ("id", "desc")],
    "importance": [("importance", "desc"), ("id", "desc")],
    "strength": [("strength", "desc"), ("id", "desc")],
    "accessed": [("idle_since", "desc"), ("id", "desc")],
}
NEVER_RECALLED_DAYS = 90

SMALL_SCOPE = 5_000  # memories that are sorted rather than walked in the workspace's order


class UnknownMemory(errors.NotFound):
    slug = "unknown-memory"
    title = "Unknown memory"


class OutsideBinding(errors.Forbidden):
    slug = "outside-binding"
    title = "The key is bound to another scope"


class EmptyFilter(errors.Malformed):
    slug = "empty-filter"
    title = "A filter must name something"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFilter:
    """Which memories: every named field narrows. Without `states` the trash is left out."""

    scope: ScopeNames = ANYWHERE
    ids: Sequence[str] | None = None
    tags: Sequence[str] = ()  # all of them
    tags_any: Sequence[str] = ()
    tags_none: Sequence[str] = ()
    kinds: Sequence[str] = ()
    states: Sequence[str] = ()
    trusts: Sequence[str] = ()
    session: str | None = None
    path_prefix: str | None = None
    pinned: bool | None = None
    since: datetime | None = None  # created at or after
    until: datetime | None = None  # created before
    importance_gte: float | None = None
    importance_lte: float | None = None
    strength_lte: float | None = None
    fades_before: datetime | None = None
    superseded: bool | None = None
    text: str = ""  # a plain substring, for lists; ranking is search's business
    never_recalled_since: datetime | None = None  # created before this and not recalled since
    rated_harmful: bool = False

    @property
    def is_empty(self) -> bool:
        return self == MemoryFilter()

    def inside(self, binding: Binding) -> "MemoryFilter":
        """The filter inside a key's binding; raises OutsideBinding where it asks for what lies outside."""
        try:
            scope = self.scope.within(agent=binding.agent, user=binding.user, project=binding.project)
        except ScopeClash as error:
            raise OutsideBinding(f"This lies outside: {error}.") from error
        return replace(self, scope=scope)


def filter_memories(workspace: Workspace, wanted: MemoryFilter, *, by_scope: bool = False) -> MemoryQuerySet:
    """The rows that pass a filter, in no order yet.

    `by_scope` is for filters that name a small scope: its scopes belong to the workspace, and saying so once more makes
    SQLite walk the workspace instead of the scope.
    """
    rows: MemoryQuerySet = (
        Memory.objects.all() if by_scope and wanted.scope else Memory.objects.filter(workspace=workspace)
    )
    rows = rows.filter(state__in=wanted.states) if wanted.states else rows.out_of_trash()
    if wanted.scope:
        rows = rows.filter(scope__in=Scope.objects.filter(workspace=workspace, **wanted.scope.named()))
    if wanted.ids is not None:
        rows = rows.filter(public_id__in=wanted.ids)
    rows = _by_tags(rows, workspace, wanted)
    simple: dict[str, Any] = {
        "kind__in": wanted.kinds or None,
        "trust__in": wanted.trusts or None,
        "session__sid": wanted.session,
        "pinned": wanted.pinned,
        "created_at__gte": wanted.since,
        "created_at__lt": wanted.until,
        "importance__gte": wanted.importance_gte,
        "importance__lte": wanted.importance_lte,
        "strength__lte": wanted.strength_lte,
        "fades_at__lt": wanted.fades_before,
        "content__icontains": wanted.text or None,
    }
    rows = rows.filter(**{name: value for name, value in simple.items() if value is not None})
    if wanted.path_prefix is not None:
        # Compared as text: SQLite's LIKE would take /Notes/ for /notes/ as well.
        start = Substr("path", 1, len(wanted.path_prefix))
        rows = rows.alias(path_start=start).filter(path_start=wanted.path_prefix)
    if wanted.superseded is not None:
        rows = rows.filter(superseded_at__isnull=not wanted.superseded)
    if wanted.rated_harmful:
        rows = rows.filter(harmful_count__gt=F("helpful_count"), access_count__gte=2)
    if wanted.never_recalled_since is not None:
        at = wanted.never_recalled_since
        rows = rows.filter(created_at__lt=at).filter(Q(last_accessed_at=None) | Q(last_accessed_at__lt=at))
    return rows


def _by_tags(rows: MemoryQuerySet, workspace: Workspace, wanted: MemoryFilter) -> MemoryQuerySet:
    for tag in wanted.tags:
        rows = rows.filter(_tagged(workspace, [tag]))
    if wanted.tags_any:
        rows = rows.filter(_tagged(workspace, wanted.tags_any))
    if wanted.tags_none:
        rows = rows.exclude(_tagged(workspace, wanted.tags_none))
    return rows


def _tagged(workspace: Workspace, names: Sequence[str]) -> Q:
    found = list(Tag.objects.filter(workspace=workspace, name__in=names).values_list("id", flat=True))
    return Q(pk__in=MemoryTag.objects.filter(tag_id__in=found).values("memory_id"))


def is_small_scope(workspace: Workspace, scope: ScopeNames) -> bool:
    """Whether a named scope has so few memories that sorting them beats walking the workspace in order."""
    if not scope:
        return False
    rows = Memory.objects.filter(scope__in=Scope.objects.filter(workspace=workspace, **scope.named()))
    return rows.order_by()[: SMALL_SCOPE + 1].count() <= SMALL_SCOPE


def list_memories(
    workspace: Workspace, wanted: MemoryFilter, *, binding: Binding | None = None, by_scope: bool = False
) -> QuerySet[Memory]:
    """Memories that pass a filter, with what a list shows; order and cut them with ORDERS and a cursor."""
    inside = wanted.inside(binding) if binding else wanted
    return (
        filter_memories(workspace, inside, by_scope=by_scope or is_small_scope(workspace, inside.scope))
        .select_related("scope", "session", "superseded_by")
        .prefetch_related("memory_tags__tag")
    )


def get_memory(
    workspace: Workspace, public_id: str, *, binding: Binding | None = None, in_trash: bool = False
) -> Memory:
    """One memory by its id; raises UnknownMemory where it is not there, in the trash, or out of the key's reach."""
    states = list(MemoryState.values) if in_trash else []
    memory = list_memories(workspace, MemoryFilter(ids=[public_id], states=states), binding=binding).first()
    if memory is None:
        raise UnknownMemory(f"There is no memory {public_id[:80]} here.")
    return memory


def tag_names(memory: Memory) -> list[str]:
    """The tags of a memory, by name; free of queries after list_memories."""
    return sorted(link.tag.name for link in memory.memory_tags.all())


def list_versions(workspace: Workspace, public_id: str, *, binding: Binding | None = None) -> QuerySet[MemoryVersion]:
    """The history of a memory, also of a forgotten one, the newest first."""
    memory = get_memory(workspace, public_id, binding=binding, in_trash=True)
    return MemoryVersion.objects.filter(memory=memory).select_related("change_set", "session").order_by("-number")


def find_by_path(
    workspace: Workspace, scope: ScopeNames, path: str, *, store: MemoryStore | None = None
) -> Memory | None:
    """The memory that stands at a path of exactly this scope."""
    names = {name: value or "" for name, value in scope.as_dict().items()}
    rows = Memory.objects.filter(
        workspace=workspace, path=path, **{f"scope__{name}": value for name, value in names.items()}
    )
    if store is not None:
        rows = rows.filter(store=store)
    return rows.out_of_trash().select_related("scope").first()


@dataclass(frozen=True, slots=True)
class Facet:
    """One value to narrow a list by, with how many of the matching memories have it (at most the cap, then `more`)."""

    value: str
    count: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Facets:
    """Facet counts of a filter, from a sample of the newest `sampled` matches when there are more than that."""

    matched: int
    more: bool
    agents: list[Facet] = field(default_factory=list)
    users: list[Facet] = field(default_factory=list)
    projects: list[Facet] = field(default_factory=list)
    kinds: list[Facet] = field(default_factory=list)
    states: list[Facet] = field(default_factory=list)
    trusts: list[Facet] = field(default_factory=list)
    tags: list[Facet] = field(default_factory=list)


FACET_VALUES = 12


def summarize_facets(workspace: Workspace, wanted: MemoryFilter) -> Facets:
    """Counts by agent, user, project, kind, state, trust and tag over the newest COUNT_CAP matches."""
    rows = filter_memories(workspace, wanted)
    sample = list(
        rows.order_by("-content_changed_at", "-id").values_list("id", "scope_id", "kind", "state", "trust")[
            : COUNT_CAP + 1
        ]
    )
    more = len(sample) > COUNT_CAP
    sample = sample[:COUNT_CAP]
    scopes = Scope.objects.in_bulk({row[1] for row in sample})
    return Facets(
        matched=len(sample),
        more=more,
        agents=_facet((scopes[row[1]].agent for row in sample), more),
        users=_facet((scopes[row[1]].user for row in sample), more),
        projects=_facet((scopes[row[1]].project for row in sample), more),
        kinds=_facet((row[2] for row in sample), more),
        states=_facet((row[3] for row in sample), more),
        trusts=_facet((row[4] for row in sample), more),
        tags=_tag_facet(workspace, rows, [row[0] for row in sample], more),
    )


def _facet(values: Iterable[str], more: bool) -> list[Facet]:
    counts: dict[str, int] = {}
    for value in values:
        if value:
            counts[value] = counts.get(value, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACET_VALUES]
    return [Facet(value, count, more) for value, count in ordered]


def _tag_facet(workspace: Workspace, rows: MemoryQuerySet, sampled: list[int], more: bool) -> list[Facet]:
    links = MemoryTag.objects.filter(tag__workspace=workspace)
    if more:
        links = links.filter(memory_id__in=rows.order_by("-content_changed_at", "-id").values("id")[:COUNT_CAP])
    elif len(sampled) <= 500:
        links = links.filter(memory_id__in=sampled)
    else:
        links = links.filter(memory_id__in=rows.values("id"))
    found = links.values_list("tag__name").annotate(count=Count("id")).order_by("-count", "tag__name")[:FACET_VALUES]
    return [Facet(name, count, more) for name, count in found]


def list_tag_rows(workspace: Workspace, *, binding: Binding | None = None) -> QuerySet[Tag]:
    """Every tag that a memory outside the trash has, each with `count`, in no order yet."""
    live = ~Q(memory_tags__memory__state=MemoryState.FORGOTTEN) & Q(memory_tags__isnull=False)
    for name in ("agent", "user", "project"):
        bound = getattr(binding, name, None)
        if bound:
            live &= Q(**{f"memory_tags__memory__scope__{name}": bound})
    counted = Count("memory_tags", filter=live)
    return Tag.objects.filter(workspace=workspace).annotate(count=counted).filter(count__gt=0)


def list_tags(workspace: Workspace, *, binding: Binding | None = None) -> list[dict[str, Any]]:
    """The tags in use with their counts, by name."""
    rows = list_tag_rows(workspace, binding=binding).order_by("name", "id")
    return [{"name": tag.name, "count": tag.count} for tag in rows]  # type: ignore[attr-defined]


def count_states(workspace: Workspace) -> dict[str, int]:
    """How many memories are in each state, capped: for the overview and the sidebar."""
    rows = Memory.objects.filter(workspace=workspace)
    return {state: count_capped(rows.filter(state=state)) for state in MemoryState.values}


@dataclass(frozen=True, slots=True)
class RecallSummary:
    """How often a memory was recalled, and the last recalls."""

    count: int
    last: list[RecalledMemory]


def summarize_recalls(memory: Memory, *, limit: int = 20) -> RecallSummary:
    rows = RecalledMemory.objects.filter(memory=memory)
    last = rows.select_related("receipt", "receipt__session").order_by("-id")[:limit]
    return RecallSummary(count=count_capped(rows), last=list(last))


def list_superseded(memory: Memory) -> list[Memory]:
    """The older memories that this one replaced."""
    return list(Memory.objects.filter(superseded_by=memory).out_of_trash().select_related("scope").order_by("-id")[:50])


def list_distinct_scopes(workspace: Workspace, *, dimension: str, prefix: str = "", limit: int = 50) -> list[str]:
    """Names in use in one dimension of scope, for pickers."""
    if dimension not in ("agent", "user", "project"):
        raise ValueError(f"unknown dimension {dimension}")
    rows = Scope.objects.filter(workspace=workspace, **{f"{dimension}__istartswith": prefix}).exclude(**{dimension: ""})
    return list(rows.order_by(dimension).values_list(dimension, flat=True).distinct()[:limit])
