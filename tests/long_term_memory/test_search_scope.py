"""Whatever is stored and asked, a search stays inside its scope and filters, and small and large paths agree."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.common import clock
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries import search_memories
from memoryhub.long_term_memory.search import engine, selection
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import MemoryDraft, ScopeNames, Writer, forget_memory, remember
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal, command_principal
from tests.factories import NOON

WORDS = ("tea", "milk", "bike", "red", "主题", "深色", "walks", "Lisbon")
names = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
scopes = st.builds(ScopeNames, agent=names, user=names, project=names)
rows = st.lists(
    st.tuples(
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5),
        scopes.filter(bool),
        st.sets(st.sampled_from(["x", "y"])),
        st.sampled_from(["semantic", "episodic"]),
        st.booleans(),  # forgotten at once
    ),
    max_size=12,
)


@pytest.fixture(params=["whole", "candidates"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to a pool: everything read, or candidates from the term index."""
    if request.param == "candidates":
        monkeypatch.setattr(selection, "SMALL", 0)
        monkeypatch.setattr(engine, "CAP", 5)
    return request.param


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(kept=rows, query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), scope=scopes, tag=st.booleans())
def test_a_search_never_leaves_its_scope_and_filters(
    owner: Principal, path: str, kept: Any, query: list[str], scope: ScopeNames, tag: bool
) -> None:
    Memory.objects.all().delete()
    writer = Writer.of(owner, door="test")
    for number, (words, place, tags, kind, forgotten) in enumerate(kept):
        draft = MemoryDraft(content=" ".join([*words, str(number)]), scope=place, tags=sorted(tags), kind=kind)
        stored = remember(writer=writer, drafts=[draft])[0]
        if forgotten:
            forget_memory(writer=writer, memory_id=stored.id)
    request = SearchRequest(query=" ".join(query), scope=scope, tags=["x"] if tag else [], kinds=["semantic"], limit=50)

    found = {hit.memory.content for hit in search_memories(owner.workspace, request, now=clock.now()).hits}

    expected = {
        " ".join([*words, str(number)])
        for number, (words, place, tags, kind, forgotten) in enumerate(kept)
        if not forgotten and scope.covers(place) and kind == "semantic" and (not tag or "x" in tags)
        and set(query) & set(words)
    }  # fmt: skip
    assert found == expected


def test_filters_apply_before_the_limit_among_thousands_of_better_matches(owner: Principal) -> None:
    writer = Writer.of(owner, door="test")
    drafts = [
        MemoryDraft(content=f"green tea green tea {number}", scope=ScopeNames(user="ana"), kind="episodic")
        for number in range(4_100)
    ]
    drafts += [
        MemoryDraft(content=f"a long note that mentions tea only once {number}", scope=ScopeNames(user="ana"))
        for number in range(1_000)
    ]
    wanted = MemoryDraft(content="tea, somewhere", scope=ScopeNames(user="ana"), tags=["rare"], kind="procedural")
    for start in range(0, len(drafts), 1_000):
        remember(writer=writer, drafts=drafts[start : start + 1_000], imported=True)
    kept = remember(writer=writer, drafts=[wanted])[0].id

    for filters in ({"tags": ["rare"]}, {"kinds": ["procedural"]}):
        request = SearchRequest(query="green tea", scope=ScopeNames(user="ana"), limit=10, **filters)
        hits = search_memories(owner.workspace, request, now=clock.now()).hits
        assert [hit.memory.public_id for hit in hits] == [kept]
    episodic = SearchRequest(query="tea", scope=ScopeNames(user="ana"), limit=10, kinds=["semantic"])
    assert len(search_memories(owner.workspace, episodic, now=clock.now()).hits) == 10


def test_a_large_scope_finds_what_a_small_one_finds(owner: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer.of(owner, door="test")
    texts = [f"note {number} about {WORDS[number % 8]} and {WORDS[number * 3 % 8]}" for number in range(60)]
    with clock.frozen(NOON):
        remember(writer=writer, drafts=[MemoryDraft(content=text, scope=ScopeNames(user="ana")) for text in texts])
    request = SearchRequest(query="bike in Lisbon", scope=ScopeNames(user="ana"), limit=5)
    now = NOON + timedelta(days=1)

    small = [hit.memory.public_id for hit in search_memories(owner.workspace, request, now=now).hits]
    monkeypatch.setattr(selection, "SMALL", 10)
    large = [hit.memory.public_id for hit in search_memories(owner.workspace, request, now=now).hits]

    assert set(small) == set(large)


@pytest.mark.parametrize("others", [1, 20])
def test_a_search_of_a_whole_workspace_finds_its_own_whatever_part_of_the_hub_it_is(
    monkeypatch: pytest.MonkeyPatch, owner: Principal, other_workspace: Workspace, others: int
) -> None:
    monkeypatch.setattr(selection, "SMALL", 0)
    texts = ["the teapot is blue", "the kettle is red", "the teapot broke"]
    strange = [f"teapot number {number} of somebody else" for number in range(others)]
    for principal, kept in ((owner, texts), (command_principal(other_workspace, "stranger"), strange)):
        drafts = [MemoryDraft(content=text, scope=ScopeNames(user="ana")) for text in kept]
        remember(writer=Writer.of(principal, door="test"), drafts=drafts)

    hits = search_memories(owner.workspace, SearchRequest(query="teapot", scope=ScopeNames()), now=clock.now()).hits

    assert (engine.share_of_documents(owner.workspace) >= engine.MOSTLY) is (others == 1)
    assert {hit.memory.content for hit in hits} == {texts[0], texts[2]}
