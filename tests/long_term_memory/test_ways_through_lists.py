"""A list finds the same memories whichever way it takes, and takes the way that its filter is best served by."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import QuerySet

from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState
from memoryhub.long_term_memory.queries import memories as memory_queries
from memoryhub.long_term_memory.queries.memories import (
    ORDERS,
    MemoryFilter,
    are_few,
    filter_memories,
    list_memories,
    meet_tags,
    walk_memories,
)
from memoryhub.long_term_memory.services import MemoryDraft, Writer, remember
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal
from tests.factories import NOON

DAY = timedelta(days=1)
FILTERS: dict[str, dict[str, Any]] = {
    "everything": {},
    "one state": {"states": ["archived"]},
    "two states": {"states": ["active", "forgotten"]},
    "kind": {"kinds": ["episodic"]},
    "kinds": {"kinds": ["episodic", "procedural"]},
    "trust": {"trusts": ["unreviewed"]},
    "trusted": {"trusts": ["trusted"]},
    "words together": {"kinds": ["semantic"], "states": ["active"], "trusts": ["trusted"]},
    "tag": {"tags": ["even"]},
    "tags": {"tags": ["even", "third"]},
    "tags and kind": {"tags": ["even", "third"], "kinds": ["semantic"], "states": ["active", "forgotten"]},
    "tag and any": {"tags": ["even"], "tags_any": ["third", "nobody has it"]},
    "tags of a user": {"tags": ["even", "third"], "scope": ScopeNames(agent="ops")},
    "any tag": {"tags_any": ["third", "even"]},
    "no tag": {"tags_none": ["even"]},
    "unknown tag": {"tags": ["nobody has it"]},
    "user": {"scope": ScopeNames(user="ana")},
    "user and tag": {"scope": ScopeNames(user="ana"), "tags": ["even"]},
    "agent": {"scope": ScopeNames(agent="ops"), "kinds": ["semantic"]},
    "session": {"session": "s-1"},
    "session and tag": {"session": "s-1", "tags": ["third"]},
    "pinned": {"pinned": True},
    "harmful": {"rated_harmful": True},
    "since": {"since": NOON - 20 * DAY},
    "until": {"until": NOON - 20 * DAY, "tags": ["even"]},
    "range": {"since": NOON - 25 * DAY, "until": NOON - 5 * DAY, "kinds": ["episodic"]},
    "fading soon": {"fades_before": NOON + 400 * DAY, "states": ["active"]},
    "unused": {"never_recalled_since": NOON - 10 * DAY},
    "text": {"text": "note 1"},
}


@pytest.fixture
def memories(owner: Principal) -> None:
    """Thirty memories of all sorts."""
    drafts = [
        MemoryDraft(
            content=f"note {number}",
            scope=ScopeNames(user=("ana", "ben")[number % 2]) if number % 3 else ScopeNames(agent="ops"),
            kind=("semantic", "episodic", "procedural")[number % 3],
            state=("active", "archived", "forgotten")[number % 7 % 3],
            trust=("trusted", "trusted", "unreviewed")[number % 5 % 3],
            tags=[*(["even"] if number % 2 == 0 else []), *(["third"] if number % 3 == 0 else [])],
            session=f"s-{number % 4}",
            pinned=number % 10 == 0,
            created_at=NOON - number * DAY,
            importance=number / 30,
            access_count=number % 4,
            last_accessed_at=NOON - number * DAY if number % 4 else None,
        )
        for number in range(30)
    ]
    remember(writer=Writer.of(owner, door="test"), drafts=drafts, imported=True)
    harmful = Memory.objects.order_by("id").values_list("pk", flat=True)[::6]
    Memory.objects.filter(pk__in=harmful).update(harmful_count=2, access_count=3)


def contents(rows: QuerySet[Memory]) -> list[str]:
    return sorted(rows.values_list("content", flat=True))


@pytest.mark.parametrize("name", FILTERS)
def test_every_way_finds_the_same(workspace: Workspace, other_workspace: Workspace, memories: None, name: str) -> None:
    wanted = MemoryFilter(**FILTERS[name])

    found = contents(filter_memories(workspace, wanted))

    assert found == contents(walk_memories(workspace, wanted))
    assert found == contents(list_memories(workspace, wanted, few=True))
    assert found == contents(list_memories(workspace, wanted, few=False))
    assert found == contents(filter_memories(workspace, meet_tags(workspace, wanted)))
    assert bool(found) == (name != "unknown tag")
    assert contents(filter_memories(other_workspace, wanted)) == []
    assert contents(walk_memories(other_workspace, wanted)) == []


def test_where_tags_meet_is_looked_up_once(
    workspace: Workspace, memories: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = MemoryFilter(tags=["even", "third"], states=list(MemoryState.values))
    met = meet_tags(workspace, wanted)
    assert sorted(met.met or []) == sorted(filter_memories(workspace, wanted).values_list("pk", flat=True))
    assert "memorytag" in plan_text(filter_memories(workspace, wanted))
    assert "memorytag" not in plan_text(filter_memories(workspace, met))
    for unmet in ({"tags": ["even"]}, {"scope": ScopeNames(user="ana"), **FILTERS["tags"]}, {"kinds": ["semantic"]}):
        assert meet_tags(workspace, MemoryFilter(**unmet)).met is None
    monkeypatch.setattr(memory_queries, "MOST_MET", 1)  # too many to be named
    assert meet_tags(workspace, wanted) == wanted


def plan_text(rows: QuerySet[Memory]) -> str:
    return str(rows.query.sql_with_params()[0])


@pytest.mark.parametrize("order", ORDERS)
def test_both_ways_give_the_same_order(workspace: Workspace, memories: None, order: str) -> None:
    keys = [f"-{field}" for field, _direction in ORDERS[order]]
    wanted = MemoryFilter(tags=["even"], states=["active", "archived"])

    sorted_ones = list_memories(workspace, wanted, few=True).order_by(*keys)
    walked = list_memories(workspace, wanted, few=False).order_by(*keys)

    assert [memory.pk for memory in sorted_ones] == [memory.pk for memory in walked]


def test_all_of_a_workspace_is_never_few(workspace: Workspace, memories: None) -> None:
    assert not are_few(workspace, MemoryFilter())
    assert not are_few(workspace, MemoryFilter(states=["active", "fading", "archived"], kinds=[]))
    assert are_few(workspace, MemoryFilter(pinned=True))


def plan_of(rows: QuerySet[Memory]) -> str:
    sql, values = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        return " / ".join(str(row[-1]) for row in cursor.fetchall())


@pytest.mark.only_on("sqlite")  # PostgreSQL knows frequencies and plans by them
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("pinned", "memory_pinned (workspace_id=?)"),
        ("harmful", "memory_harmful (workspace_id=?)"),
        ("one state", "memory_state (workspace_id=? AND state=?)"),
        ("kind", "memory_kind (workspace_id=? AND kind=?)"),
        ("trust", "memory_trust (workspace_id=? AND trust=?)"),
        ("since", "memory_created (workspace_id=? AND created_at>?)"),
        ("range", "memory_created (workspace_id=? AND created_at>? AND created_at<?)"),
        ("fading soon", "memory_fading_soon (workspace_id=? AND fades_at<?)"),
        ("tag", "memory_tag_by_tag (tag_id=?)"),
        ("user", "(scope_id=?)"),
        ("session", "(session_id=?)"),
    ],
)
def test_what_few_have_is_found_by_an_index_of_its_own(
    workspace: Workspace, memories: None, name: str, index: str
) -> None:
    plan = plan_of(filter_memories(workspace, MemoryFilter(**FILTERS[name])))

    assert index in plan
    assert "SCAN" not in plan


@pytest.mark.only_on("sqlite")  # PostgreSQL knows frequencies and plans by them
@pytest.mark.parametrize(
    "name", ["everything", "one state", "trusted", "kind", "since", "unused", "tag", "words together"]
)
@pytest.mark.parametrize(
    ("order", "index"),
    [
        ("recency", "memory_newest"),
        ("created", "memory_created"),
        ("importance", "memory_important"),
        ("strength", "memory_strongest"),
        ("accessed", "memory_used"),
    ],
)
def test_what_many_have_is_read_in_the_lists_order(
    workspace: Workspace, memories: None, name: str, order: str, index: str
) -> None:
    keys = [f"-{field}" for field, _direction in ORDERS[order]]

    plan = plan_of(walk_memories(workspace, MemoryFilter(**FILTERS[name])).order_by(*keys)[:31])

    assert f"{index} (workspace_id=?)" in plan
    assert "TEMP B-TREE" not in plan
