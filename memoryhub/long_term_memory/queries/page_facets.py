"""The values of each dimension with how many matching memories have them, counted inside the database.

Up to COUNT_CAP matches the counts are exact. Beyond that they are those of COUNT_CAP matches, so the page
costs the same whatever the table holds.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from memoryhub.common.keyset import COUNT_CAP
from memoryhub.common.plain_query import fetch_plain, fetch_sql
from memoryhub.long_term_memory.models import MemoryTag, Scope, Tag
from memoryhub.long_term_memory.queries.memories import (
    FACET_VALUES,
    Facet,
    Facets,
    MemoryFilter,
    filter_memories,
    named_ids,
    walk_memories,
)
from memoryhub.workspaces.models import Workspace

_Match = tuple[int, int, str, str, str]


def count_facets(workspace: Workspace, wanted: MemoryFilter, *, with_tags: bool = True) -> Facets:
    """Counts by agent, user, project, kind, state, trust and, unless they are not needed, tag."""
    matches = _read_matches(workspace, wanted)
    more = len(matches) > COUNT_CAP
    pks = [match[0] for match in matches]
    return Facets(
        matched=min(len(matches), COUNT_CAP),
        more=more,
        pks=pks,
        tags=_count_tags(pks, more) if with_tags else [],
        kinds=_ordered(Counter(match[2] for match in matches).items(), more),
        states=_ordered(Counter(match[3] for match in matches).items(), more),
        trusts=_ordered(Counter(match[4] for match in matches).items(), more),
        **_count_names(Counter(match[1] for match in matches), more),
    )


def _read_matches(workspace: Workspace, wanted: MemoryFilter) -> list[_Match]:
    """The matches, one more than the cap: the number of the row, its scope, kind, state and trust.

    All that is out of the trash is read in its order, the newest first. Where something narrows, the narrowest way in is
    taken instead: an order would make SQLite walk the whole workspace by time.
    """
    if wanted.is_everything:
        rows = walk_memories(workspace, wanted).order_by("-content_changed_at", "-id")
    else:
        rows = filter_memories(workspace, wanted).order_by()
    return fetch_plain(rows.values_list("pk", "scope_id", "kind", "state", "trust")[: COUNT_CAP + 1])


def _count_names(scopes: Counter[int], more: bool) -> dict[str, list[Facet]]:
    """The agents, users and projects of scopes that stand in so many matches."""
    names = Scope.objects.filter(pk__in=named_ids(list(scopes))).values_list("pk", "agent", "user", "project")
    counts: dict[str, Counter[str]] = {"agents": Counter(), "users": Counter(), "projects": Counter()}
    for pk, *named in fetch_plain(names):
        for counted, name in zip(counts.values(), named, strict=True):
            counted[name] += scopes[pk]
    return {name: _ordered(counted.items(), more) for name, counted in counts.items()}


def _count_tags(pks: Sequence[int], more: bool) -> list[Facet]:
    ids = named_ids(pks)
    # CROSS JOIN keeps the order on SQLite, whose planner would otherwise walk every tag of the workspace.
    rows = fetch_sql(
        f"SELECT t.name, c.number FROM (SELECT l.tag_id, COUNT(*) AS number FROM ({ids.sql}) counted "  # noqa: S608
        f"CROSS JOIN {MemoryTag._meta.db_table} l WHERE l.memory_id = counted.id GROUP BY l.tag_id) c "
        f"JOIN {Tag._meta.db_table} t ON t.id = c.tag_id ORDER BY c.number DESC, t.name LIMIT {FACET_VALUES}",
        ids.params,
    )
    return [Facet(name, number, more) for name, number in rows]


def _ordered(counted: Iterable[tuple[str, int]], more: bool) -> list[Facet]:
    best = sorted(((value, number) for value, number in counted if value), key=lambda pair: (-pair[1], pair[0]))
    return [Facet(value, number, more) for value, number in best[:FACET_VALUES]]
