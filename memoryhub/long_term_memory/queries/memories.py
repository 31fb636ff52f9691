"""Reading memories: lists with filters and orders, one memory with its history, counts for facets."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Count, Exists, F, Func, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.db.models.functions import Substr

from memoryhub.common import errors
from memoryhub.common.keyset import count_capped
from memoryhub.long_term_memory.domain.scoping import ANYWHERE, ScopeClash, ScopeNames
from memoryhub.long_term_memory.models import (
    Kind,
    Memory,
    MemoryQuerySet,
    MemoryState,
    MemoryStore,
    MemoryTag,
    MemoryVersion,
    RecalledMemory,
    Scope,
    Tag,
    Trust,
)
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.principals import Binding, OutsideBinding

# order name -> keyset fields, all indexed with the workspace in front
ORDERS: dict[str, list[tuple[str, str]]] = {
    "recency": [("content_changed_at", "desc"), ("id", "desc")],
    "created": [("created_at", "desc"), ("id", "desc")],
    "importance": [("importance", "desc"), ("id", "desc")],
    "strength": [("strength", "desc"), ("id", "desc")],
    "accessed": [("idle_since", "desc"), ("id", "desc")],
}
NEVER_RECALLED_DAYS = 90

MOST_LINKS = 100_000  # of a tag, counted to see which of several is rarer
MOST_MET = 10_000  # memories with all of a filter's tags that are looked up once for several questions
FEW = 5_000  # memories that are sorted rather than walked in the workspace's order
Rows = TypeVar("Rows", bound=QuerySet[Any])


class UnknownMemory(errors.NotFound):
    slug = "unknown-memory"
    title = "Unknown memory"


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
    met: Sequence[int] | None = None  # the rows that have all of the tags, where somebody looked already: `meet_tags`

    @property
    def is_empty(self) -> bool:
        return self == MemoryFilter()

    @property
    def is_everything(self) -> bool:
        """Whether it is all that is in more than one state: most of a workspace."""
        named = (getattr(self, field.name) for field in fields(self) if field.name != "states")
        return len(self.states) != 1 and not any(value or value == 0 for value in named if value is not False)

    def inside(self, binding: Binding) -> "MemoryFilter":
        """The filter inside a key's binding; raises OutsideBinding where it asks for what lies outside."""
        try:
            scope = self.scope.within(agent=binding.agent, user=binding.user, project=binding.project)
        except ScopeClash as error:
            raise OutsideBinding(f"This lies outside: {error}.") from error
        return replace(self, scope=scope)


class _Unled(Func):
    """A column that no index is led by. SQLite knows no frequencies: without this it takes any index that a condition
    leads into, though nearly all rows have it, and sorts them, instead of walking the order that the list is in."""

    template = "+%(expressions)s"
    arity = 1


def filter_memories(workspace: Workspace, wanted: MemoryFilter) -> MemoryQuerySet:
    """The rows that pass a filter, in no order: for counting them, collecting them, or sorting few of them."""
    if wanted.ids is not None:
        return walk_memories(workspace, wanted)  # by id, and the rest is looked at there
    rows: MemoryQuerySet = Memory.objects.all()
    if not (wanted.scope or wanted.tags or wanted.tags_any or wanted.session):
        rows = rows.filter(workspace=workspace)  # those belong to it; saying so makes SQLite read all of it
    choices = _tag_choices(wanted)
    if wanted.met is not None:
        rows = rows.filter(pk__in=named_ids(wanted.met))
    elif choices and wanted.scope:  # an index over the scope holds the ids to look at
        rows = _with_each(rows, workspace, choices, of="pk")
    elif choices:  # met among the links of tags alone, which are small, before any memory is looked at
        rows = rows.filter(pk__in=_meeting(workspace, choices))
    rows = _with_created(rows, wanted, unled=bool(wanted.tags or wanted.scope or wanted.session))
    return _narrowed(rows, workspace, wanted, led_by=_leading_word(wanted))


def walk_memories(workspace: Workspace, wanted: MemoryFilter) -> MemoryQuerySet:
    """The rows that pass a filter, for reading the first ones in one of ORDERS where many pass.

    Only the workspace leads into an index, so that the order's own is walked; it holds what most filters look at.
    """
    rows: MemoryQuerySet = Memory.objects.filter(workspace=workspace)
    rows = _with_each(rows, workspace, _tag_choices(wanted), of="pk")
    rows = _with_created(rows, wanted, unled=True)
    return _narrowed(rows, workspace, wanted, led_by="")


def _tag_choices(wanted: MemoryFilter) -> list[Sequence[str]]:
    """Lists of tags of each of which a memory has at least one."""
    return [*([tag] for tag in wanted.tags), *([wanted.tags_any] if wanted.tags_any else [])]


# Words that most memories have, or one of a few: an index led by them is worth its way only for the rarest of them.
_WORDS: dict[str, tuple[Sequence[str], str]] = {
    "trust": (Trust.values, Trust.TRUSTED),
    "state": (MemoryState.values, ""),
    "kind": (Kind.values, ""),
}


def _chosen_words(wanted: MemoryFilter) -> dict[str, Sequence[str]]:
    states = wanted.states or [state for state in MemoryState.values if state != MemoryState.FORGOTTEN]
    chosen = {"trust": wanted.trusts, "state": states, "kind": wanted.kinds}
    return {name: values for name, values in chosen.items() if values}


def _leading_word(wanted: MemoryFilter) -> str:
    """Which of the words finds the rows; none where something else of the filter finds fewer."""
    finer = (
        wanted.scope or wanted.tags or wanted.tags_any or wanted.session or wanted.pinned
        or wanted.rated_harmful or wanted.since or wanted.until or wanted.fades_before or wanted.path_prefix is not None
    )  # fmt: skip
    if finer:
        return ""
    for name, values in _chosen_words(wanted).items():
        if len(set(values)) == 1 and values[0] != _WORDS[name][1]:
            return name
    return ""


def _narrowed(rows: MemoryQuerySet, workspace: Workspace, wanted: MemoryFilter, *, led_by: str) -> MemoryQuerySet:
    """The conditions that no index is led by, but for one of the words."""
    for name, values in _chosen_words(wanted).items():
        if set(values) < set(_WORDS[name][0]):
            rows = rows.filter(**{name: values[0]}) if name == led_by else _unled(rows, name, "in", list(values))
    if wanted.scope:
        rows = rows.filter(scope__in=Scope.objects.filter(workspace=workspace, **wanted.scope.named()))
    if wanted.session:
        rows = rows.filter(session__in=Session.objects.filter(workspace=workspace, sid=wanted.session))
    if wanted.ids is not None:
        rows = rows.filter(public_id__in=wanted.ids)
    if wanted.tags_none:
        rows = rows.exclude(_tagged(workspace, wanted.tags_none))
    simple: dict[str, Any] = {
        "pinned": wanted.pinned,
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
        rows = rows.filter(Q(last_accessed_at=None) | Q(last_accessed_at__lt=at))
    return rows


def _with_created(rows: MemoryQuerySet, wanted: MemoryFilter, *, unled: bool) -> MemoryQuerySet:
    for lookup, at in (("gte", wanted.since), ("lt", wanted.until), ("lt", wanted.never_recalled_since)):
        if at is not None:
            rows = _unled(rows, "created_at", lookup, at) if unled else rows.filter(**{f"created_at__{lookup}": at})
    return rows


def _unled(rows: MemoryQuerySet, name: str, lookup: str, value: Any) -> MemoryQuerySet:
    if connection.vendor != "sqlite":
        return rows.filter(**{f"{name}__{lookup}": value})
    return rows.alias(**{f"plain_{name}": _Unled(F(name))}).filter(**{f"plain_{name}__{lookup}": value})


def _links(workspace: Workspace, names: Sequence[str]) -> QuerySet[MemoryTag]:
    found = list(Tag.objects.filter(workspace=workspace, name__in=names).values_list("id", flat=True))
    return MemoryTag.objects.filter(tag_id__in=found)


def meet_tags(workspace: Workspace, wanted: MemoryFilter) -> MemoryFilter:
    """The filter with the rows that have all of its tags, where it names several and few have them all.

    For who asks more than one question of a filter: where tags meet is looked up once. Only the caller's own moment sees
    it, so don't keep it.
    """
    choices = _tag_choices(wanted)
    if len(choices) < 2 or wanted.scope or wanted.ids is not None:
        return wanted
    met = list(_meeting(workspace, choices).values_list("memory_id", flat=True)[: MOST_MET + 1])
    return replace(wanted, met=met) if len(met) <= MOST_MET else wanted


def _meeting(workspace: Workspace, choices: list[Sequence[str]]) -> QuerySet[MemoryTag, Any]:
    """The ids of memories with a tag of each list."""
    first, *others = _rarest_first(workspace, choices)
    return _with_each(_links(workspace, first), workspace, others, of="memory_id").values("memory_id")


def named_ids(pks: Sequence[int]) -> RawSQL:
    """Ids as the rows of one value, each an `id`: thousands as values of their own take longer than the look-up."""
    if connection.vendor == "sqlite":
        return RawSQL("SELECT value AS id FROM json_each(%s)", [json.dumps(pks)])
    return RawSQL("SELECT unnest(%s::bigint[]) AS id", [list(pks)])


def _rarest_first(workspace: Workspace, choices: list[Sequence[str]]) -> list[Sequence[str]]:
    """Lists of tags, those that fewest memories have before the others: each of their links is looked up among the rest."""
    if len(choices) < 2:
        return choices
    return sorted(choices, key=lambda names: _links(workspace, names)[:MOST_LINKS].count())


def _with_each(rows: Rows, workspace: Workspace, choices: Iterable[Sequence[str]], *, of: str) -> Rows:
    """The rows whose memory has a tag of each list."""
    for names in choices:
        rows = rows.filter(Exists(_links(workspace, names).filter(memory_id=OuterRef(of))))
    return rows


def _tagged(workspace: Workspace, names: Sequence[str]) -> Q:
    return Q(pk__in=_links(workspace, names).values("memory_id"))


def are_few(workspace: Workspace, wanted: MemoryFilter) -> bool:
    """Whether so few memories pass a filter that sorting them beats walking the workspace in order."""
    if wanted.is_everything:
        return False
    return count_capped(filter_memories(workspace, wanted), FEW) <= FEW


def find_memories(
    workspace: Workspace, wanted: MemoryFilter, *, binding: Binding | None = None, few: bool | None = None
) -> MemoryQuerySet:
    """Memories that pass a filter; order and cut them with ORDERS and a cursor, which reads the rows by load_memories.

    `few` says how many pass where the caller knows it; else they are counted, up to FEW.
    """
    inside = wanted.inside(binding) if binding else wanted
    if few is None:
        few = are_few(workspace, inside)
    if few:
        return Memory.objects.filter(pk__in=filter_memories(workspace, inside).values("pk"))
    return walk_memories(workspace, inside)


def list_memories(
    workspace: Workspace, wanted: MemoryFilter, *, binding: Binding | None = None, few: bool | None = None
) -> MemoryQuerySet:
    """The same with what a list shows of each, for who reads all or most of them."""
    return with_details(find_memories(workspace, wanted, binding=binding, few=few))


def among(pks: Sequence[int]) -> MemoryQuerySet:
    """The memories of these rows, however many."""
    return Memory.objects.filter(pk__in=named_ids(pks))


def load_memories(pks: Sequence[int]) -> dict[int, Memory]:
    """Memories with what a list shows, by their rows' numbers."""
    return with_details(Memory.objects.all()).in_bulk(pks)


def with_details(rows: MemoryQuerySet) -> MemoryQuerySet:
    """The rows with what a list shows of each: scope, session, successor and tags."""
    return rows.select_related("scope", "session", "superseded_by").prefetch_related("memory_tags__tag")


def get_memory(
    workspace: Workspace, public_id: str, *, binding: Binding | None = None, in_trash: bool = False
) -> Memory:
    """One memory by its id; raises UnknownMemory where it is not there, in the trash, or out of the key's reach."""
    states = list(MemoryState.values) if in_trash else []
    memory = list_memories(workspace, MemoryFilter(ids=[public_id], states=states), binding=binding, few=True).first()
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
    """Facet counts of a filter; of as many matches as the cap where there are more."""

    matched: int
    more: bool
    pks: list[int]  # the rows that were counted
    agents: list[Facet] = field(default_factory=list)
    users: list[Facet] = field(default_factory=list)
    projects: list[Facet] = field(default_factory=list)
    kinds: list[Facet] = field(default_factory=list)
    states: list[Facet] = field(default_factory=list)
    trusts: list[Facet] = field(default_factory=list)
    tags: list[Facet] = field(default_factory=list)


FACET_VALUES = 12


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
