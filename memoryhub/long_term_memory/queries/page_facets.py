"""The values of each dimension with how many matching memories have them, counted inside the database.

Up to COUNT_CAP matches the counts are exact. Beyond that they are those of COUNT_CAP matches, so the page
costs the same whatever the table holds.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection

from memoryhub.common.keyset import COUNT_CAP
from memoryhub.long_term_memory.models import MemoryTag, Scope, Tag
from memoryhub.long_term_memory.queries.memories import (
    FACET_VALUES,
    Facet,
    Facets,
    MemoryFilter,
    filter_memories,
    walk_memories,
)
from memoryhub.workspaces.models import Workspace

_NAMES = ("agents", "users", "projects", "kinds", "states", "trusts")


def count_facets(workspace: Workspace, wanted: MemoryFilter, *, with_tags: bool = True) -> Facets:
    """Counts by agent, user, project, kind, state, trust and, unless they are not needed, tag."""
    rows = _count_dimensions(workspace, wanted)
    matched = sum(row[-1] for row in rows)
    more = matched > COUNT_CAP
    counted = {name: _ordered(((row[place], row[-1]) for row in rows), more) for place, name in enumerate(_NAMES)}
    tags = _count_tags(workspace, wanted, more) if with_tags else []
    return Facets(matched=min(matched, COUNT_CAP), more=more, tags=tags, **counted)


def _sample(workspace: Workspace, wanted: MemoryFilter, *columns: str) -> tuple[str, tuple[Any, ...]]:
    """The matches, one more than the cap, as SQL with its values.

    All that is out of the trash is read in its order, the newest first. Where something narrows, the narrowest way in is
    taken instead: an order would make SQLite walk the whole workspace by time.
    """
    if wanted.is_everything:
        rows = walk_memories(workspace, wanted).order_by("-content_changed_at", "-id")
    else:
        rows = filter_memories(workspace, wanted).order_by()
    return rows.values(*columns)[: COUNT_CAP + 1].query.sql_with_params()


def _count_dimensions(workspace: Workspace, wanted: MemoryFilter) -> list[tuple[Any, ...]]:
    try:
        sample, values = _sample(workspace, wanted, "scope_id", "kind", "state", "trust")
    except EmptyResultSet:  # Django knows without asking: an unknown tag, a search that found no id
        return []
    scopes = Scope._meta.db_table
    return _fetch(
        f'SELECT s.agent, s."user", s.project, g.kind, g.state, g.trust, g.number FROM ('  # noqa: S608
        f"SELECT scope_id, kind, state, trust, COUNT(*) AS number FROM ({sample}) sample "
        f"GROUP BY scope_id, kind, state, trust) g JOIN {scopes} s ON s.id = g.scope_id",
        values,
    )


def _count_tags(workspace: Workspace, wanted: MemoryFilter, more: bool) -> list[Facet]:
    try:
        sample, values = _sample(workspace, wanted, "id")
    except EmptyResultSet:
        return []
    # CROSS JOIN keeps the order on SQLite, whose planner would otherwise walk every tag of the workspace.
    rows = _fetch(
        f"SELECT t.name, c.number FROM (SELECT l.tag_id, COUNT(*) AS number FROM ({sample}) sample "  # noqa: S608
        f"CROSS JOIN {MemoryTag._meta.db_table} l WHERE l.memory_id = sample.id GROUP BY l.tag_id) c "
        f"JOIN {Tag._meta.db_table} t ON t.id = c.tag_id ORDER BY c.number DESC, t.name LIMIT {FACET_VALUES}",
        values,
    )
    return [Facet(name, number, more) for name, number in rows]


def _fetch(sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def _ordered(pairs: Iterable[tuple[str, int]], more: bool) -> list[Facet]:
    counts: Counter[str] = Counter()
    for value, number in pairs:
        if value:
            counts[value] += number
    best = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACET_VALUES]
    return [Facet(value, number, more) for value, number in best]
