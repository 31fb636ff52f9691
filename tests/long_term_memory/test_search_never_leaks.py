"""Random memories in every state, random keys and requests: a search returns exactly what it may, and says why not else."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.common import clock, errors
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries import list_memories, search_memories
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.queries.recall import explain_absence
from memoryhub.long_term_memory.search import engine, selection
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import (
    MemoryChanges,
    MemoryDraft,
    ScopeNames,
    Writer,
    edit_memory,
    forget_memory,
    remember,
    supersede_memory,
)
from memoryhub.workspaces.principals import Binding, Principal
from tests.factories import NOON

LATER = NOON + timedelta(hours=1)
FATES = ("plain", "forgotten", "archived", "quarantined", "superseded", "expired", "over", "not yet", "unreviewed")
names = st.one_of(st.none(), st.sampled_from(["a", "b"]))
scopes = st.builds(ScopeNames, agent=names, user=names, project=names)
bindings = st.builds(Binding, agent=names, user=names, project=names)


@dataclass(frozen=True)
class Kept:
    scope: ScopeNames
    fate: str
    tags: frozenset[str]
    kind: str
    importance: float


rows = st.lists(
    st.builds(
        Kept,
        scope=scopes.filter(bool),
        fate=st.sampled_from(FATES),
        tags=st.frozensets(st.sampled_from(["x", "y"])),
        kind=st.sampled_from(["semantic", "episodic"]),
        importance=st.sampled_from([0.4, 0.9]),
    ),
    min_size=1,
    max_size=10,
)
requests = st.fixed_dictionaries(
    {"scope": scopes},
    optional={
        "tags": st.just(["x"]),
        "tags_any": st.just(["x", "y"]),
        "tags_none": st.just(["y"]),
        "kinds": st.just(["semantic"]),
        "importance_gte": st.just(0.5),
        "states": st.sampled_from([["active"], ["archived"], ["active", "archived"]]),
        "include": st.lists(st.sampled_from(["archived", "superseded", "quarantined"]), unique=True),
    },
)


@pytest.fixture(params=["whole", "candidates"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a pool: everything read, or candidates from the term index."""
    if request.param == "candidates":
        monkeypatch.setattr(selection, "SMALL", 0)
        monkeypatch.setattr(engine, "CAP", 5)
    return str(request.param)


def keep(writer: Writer, number: int, row: Kept) -> str:
    fields: dict[str, Any] = {
        "quarantined": {"trust": "quarantined"},
        "unreviewed": {"trust": "unreviewed"},
        "expired": {"expires_at": NOON + timedelta(minutes=30)},
        "over": {"valid_until": NOON + timedelta(minutes=30)},
        "not yet": {"valid_from": NOON + timedelta(hours=2)},
    }.get(row.fate, {})
    draft = MemoryDraft(
        content=f"tea {number}",
        scope=row.scope,
        tags=sorted(row.tags),
        kind=row.kind,
        importance=row.importance,
        **fields,
    )
    made = remember(writer=writer, drafts=[draft])[0].id
    if row.fate == "forgotten":
        forget_memory(writer=writer, memory_id=made)
    elif row.fate == "archived":
        edit_memory(writer=writer, memory_id=made, changes=MemoryChanges(archived=True))
    elif row.fate == "superseded":
        supersede_memory(writer=writer, memory_id=made, draft=MemoryDraft(content=f"coffee {number}"))
    return made


def may_return(row: Kept, asked: dict[str, Any], binding: Binding) -> bool:
    include, states = asked.get("include", ()), asked.get("states") or ["active", "fading"]
    archived = row.fate == "archived"
    fits_fate = {
        "forgotten": False,
        "archived": "archived" in include or "archived" in states,
        "quarantined": "quarantined" in include,
        "superseded": "superseded" in include,
        "expired": False,
        "over": False,
        "not yet": False,
    }.get(row.fate, True)
    return (
        fits_fate
        and (archived or "active" in states)
        and asked["scope"].covers(row.scope)
        and ScopeNames(binding.agent, binding.user, binding.project).covers(row.scope)
        and set(asked.get("tags", ())) <= row.tags
        and (not asked.get("tags_any") or bool(row.tags & set(asked["tags_any"])))
        and not row.tags & set(asked.get("tags_none", ()))
        and row.kind in asked.get("kinds", ["semantic", "episodic"])
        and row.importance >= asked.get("importance_gte", 0)
    )


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(kept=rows, asked=requests, binding=bindings)
def test_a_search_returns_exactly_what_it_may(
    owner: Principal, path: str, kept: list[Kept], asked: dict[str, Any], binding: Binding
) -> None:
    Memory.objects.all().delete()
    writer = Writer.of(owner, door="test")
    with clock.frozen(NOON):
        ids = [keep(writer, number, row) for number, row in enumerate(kept)]
    request = SearchRequest(query="tea", limit=100, **asked)

    try:
        hits = search_memories(owner.workspace, request, now=LATER, binding=binding).hits
    except errors.Forbidden:
        bound = ScopeNames(binding.agent, binding.user, binding.project).named()
        assert any(asked["scope"].named().get(name, value) != value for name, value in bound.items())
        return

    found = {hit.memory.public_id for hit in hits}
    assert found == {made for made, row in zip(ids, kept, strict=True) if may_return(row, asked, binding)}
    visible = {memory.public_id for memory in list_memories(owner.workspace, MemoryFilter(states=[
        "active", "fading", "archived", "forgotten"]), binding=binding)}  # fmt: skip
    for made in ids:
        if made in visible:
            step = explain_absence(owner.workspace, request, made, now=LATER, binding=binding).step
            assert (step == "returned") == (made in found)
        else:
            with pytest.raises(errors.NotFound):
                explain_absence(owner.workspace, request, made, now=LATER, binding=binding)
