"""Appending, rewinding and forking, against the real tables."""

import random

import pytest

from memoryhub.session_cache.models import Blob, Branch, PackedHead, SessionEvent, SessionTree
from memoryhub.session_cache.queries import stretches
from memoryhub.session_cache.queries import tree as tree_queries
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.session_cache.services import events as services
from memoryhub.session_cache.services import packs
from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session, rewind
from memoryhub.workspaces.services import ensure_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace):
    return ensure_session(workspace=workspace, sid="s1")


def say(id, parent=None, text=None, kind="message", role="user"):
    return GivenEvent(kind=kind, content=text if text is not None else f"text {id}", id=id, parent_id=parent, role=role)


def window_ids(session, at=None, **budget):
    return [event.id for event in get_window(session, at=at, **budget).events]


def pack_often(monkeypatch):
    """Packs of a few events, made every third and read for any window."""
    monkeypatch.setattr(packs, "PACK_EVERY", 3)
    monkeypatch.setattr(packs, "MOST_EVENTS", 5)
    monkeypatch.setattr(stretches, "WORTH_A_PACK", 1)


def test_a_list_is_a_chain_and_the_head_is_its_end(session):
    done = append_events(session=session, events=[say("a"), say("b"), say("c")])

    assert [(i.id, i.parent_id, i.depth) for i in done.items] == [("a", None, 0), ("b", "a", 1), ("c", "b", 2)]
    assert done.head == "c"
    assert window_ids(session) == ["a", "b", "c"]


def test_repeating_a_batch_changes_nothing(session):
    append_events(session=session, events=[say("a"), say("b")])
    append_events(session=session, events=[say("c")])

    again = append_events(session=session, events=[say("a"), say("b")])

    assert [(i.id, i.parent_id) for i in again.items] == [("a", None), ("b", "a")]
    assert again.head == "c"
    assert SessionEvent.objects.count() == 3


def test_the_same_id_for_something_else_is_refused_and_nothing_of_the_batch_is_stored(session):
    append_events(session=session, events=[say("a")])

    with pytest.raises(services.EventIdTaken):
        append_events(session=session, events=[say("new"), say("a", text="other")])

    assert SessionEvent.objects.count() == 1


def test_a_second_child_starts_a_branch_and_moves_the_head(session):
    append_events(session=session, events=[say("a"), say("b"), say("c")])

    append_events(session=session, events=[say("d", parent="a")])

    assert window_ids(session) == ["a", "d"]
    assert window_ids(session, at="c") == ["a", "b", "c"]
    assert Branch.objects.count() == 2


def test_expected_head_guards_against_another_writer(session):
    append_events(session=session, events=[say("a")], expected_head=None)

    with pytest.raises(services.HeadMoved) as caught:
        append_events(session=session, events=[say("b")], expected_head=None)

    assert caught.value.extra["head"] == "a"
    append_events(session=session, events=[say("b")], expected_head="a")
    assert window_ids(session) == ["a", "b"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([say("x", parent="nowhere")], id="orphan"),
        pytest.param([say("x", parent="y"), say("y", parent="x")], id="circle"),
        pytest.param([say("x", parent="x")], id="own parent"),
        pytest.param([say("x"), say("x")], id="twice"),
        pytest.param([say("n", kind="note"), say("x", parent="n")], id="a note as parent"),
        pytest.param([say("x"), say("z", parent="theirs")], id="another session's event"),
    ],
)
def test_broken_parents_store_nothing(session, workspace, events):
    append_events(session=ensure_session(workspace=workspace, sid="other"), events=[say("theirs")])

    with pytest.raises(services.BrokenParents):
        append_events(session=session, events=events)

    assert SessionEvent.objects.filter(session=session).count() == 0


def test_a_stored_note_is_nobodys_parent(session):
    append_events(session=session, events=[say("a"), say("n", kind="note", role="")])

    with pytest.raises(services.BrokenParents, match="note"):
        append_events(session=session, events=[say("b", parent="n")])

    append_events(session=session, events=[say("b")])
    assert tree_queries.get_event(session, "b").parent_event_id == "a"
    assert window_ids(session) == ["a", "b"]


def test_a_note_takes_no_part_in_the_prefix_hash(session, workspace):
    twin = ensure_session(workspace=workspace, sid="twin")
    append_events(session=session, events=[say("a"), say("n", kind="note", role=""), say("b")])
    append_events(session=twin, events=[say("a"), say("b")])

    assert get_window(session).prefix_hash == get_window(twin).prefix_hash


def test_rewinding_before_a_compaction_restores_the_raw_messages(session):
    append_events(session=session, events=[say("a"), say("b"), say("sum", kind="compaction"), say("c")])
    assert window_ids(session) == ["sum", "c"]

    moved = rewind(session=session, to="b")

    assert moved.abandoned == ("sum", "c")
    assert window_ids(session) == ["a", "b"]
    assert SessionEvent.objects.count() == 4


def test_system_texts_survive_a_compaction_in_another_branch(session):
    append_events(session=session, events=[say("sys", role="system"), say("a"), say("b")])
    append_events(session=session, events=[say("sum", parent="a", kind="compaction"), say("c")])

    assert window_ids(session) == ["sys", "sum", "c"]


def test_a_rewind_to_nowhere_is_refused(session, workspace):
    append_events(session=session, events=[say("a")])
    append_events(session=ensure_session(workspace=workspace, sid="other"), events=[say("theirs")])

    for target in ("nowhere", "theirs"):
        with pytest.raises(services.NoSuchPlace):
            rewind(session=session, to=target)


def test_a_fork_shares_the_past_and_nothing_else(session, workspace):
    append_events(session=session, events=[say("a"), say("b"), say("c")])

    fork = fork_session(workspace=workspace, session=session, at="b", sid="f1")
    append_events(session=fork, events=[say("d")])
    append_events(session=session, events=[say("e")])

    assert window_ids(fork) == ["a", "b", "d"]
    assert window_ids(session) == ["a", "b", "c", "e"]
    assert [e.event_id for e in tree_queries.list_events(fork)[0]] == ["a", "b", "d"]
    for hidden in ("c", "e"):
        with pytest.raises(tree_queries.UnknownEvent):
            get_window(fork, at=hidden)
    with pytest.raises(tree_queries.UnknownEvent):
        get_window(session, at="d")


def test_an_id_of_the_shared_past_is_taken_in_the_fork(session, workspace):
    append_events(session=session, events=[say("a"), say("b")])
    fork = fork_session(workspace=workspace, session=session, at="a", sid="f1")

    with pytest.raises(services.EventIdTaken):
        append_events(session=fork, events=[say("a", text="other")])

    append_events(session=fork, events=[say("b", text="the fork can not see the parent's b")])
    assert window_ids(fork) == ["a", "b"]


def test_a_fork_is_repeatable_and_never_overwrites(session, workspace):
    append_events(session=session, events=[say("a"), say("b")])
    fork = fork_session(workspace=workspace, session=session, at="a", sid="f1")

    assert fork_session(workspace=workspace, session=session, at="a", sid="f1") == fork
    with pytest.raises(services.SessionExists):
        fork_session(workspace=workspace, session=session, at="b", sid="f1")
    append_events(session=fork, events=[say("c")])
    with pytest.raises(services.SessionExists):
        fork_session(workspace=workspace, session=session, at="a", sid="f1")


def test_a_fork_of_a_fork_and_a_rewind_behind_both(session, workspace):
    append_events(session=session, events=[say("a"), say("b")])
    fork = fork_session(workspace=workspace, session=session, at="b", sid="f1")
    append_events(session=fork, events=[say("c"), say("d")])
    second = fork_session(workspace=workspace, session=fork, at="c", sid="f2")
    append_events(session=second, events=[say("e")])

    assert window_ids(second) == ["a", "b", "c", "e"]
    rewind(session=second, to="a")
    append_events(session=second, events=[say("g")])
    assert window_ids(second) == ["a", "g"]


def test_equal_contents_are_stored_once_per_workspace(session, workspace):
    append_events(session=session, events=[say("a", text="the same"), say("b", text="the same")])
    append_events(session=ensure_session(workspace=workspace, sid="s2"), events=[say("c", text="the same")])

    assert Blob.objects.count() == 1


def test_contents_come_back_byte_for_byte(session):
    content = {"z": 1, "a": [1.5, 10**30, "é\u2028 \U0001f600"], "input": {"b": 1, "a": None}}

    append_events(session=session, events=[say("a", text=content, role="assistant")])

    back = get_window(session).events[0].content
    assert back == content
    assert list(back) == ["z", "a", "input"]


def test_pages_walk_through_every_event_once(session, workspace):
    append_events(session=session, events=[say(f"a{i}") for i in range(7)])
    fork = fork_session(workspace=workspace, session=session, at="a4", sid="f1")
    append_events(session=fork, events=[say(f"b{i}") for i in range(6)])
    append_events(session=fork, events=[say("c0", parent="b1")])

    for limit in (1, 2, 3, 5, 50):
        seen, after = [], (0, 0)
        while after is not None:
            rows, after = tree_queries.list_events(fork, after=after, limit=limit)
            seen += [row.event_id for row in rows]
        assert seen == ["a0", "a1", "a2", "a3", "a4", *[f"b{i}" for i in range(6)], "c0"]
    on_the_way, _ = tree_queries.list_events(fork, branch_of="c0")
    assert [row.event_id for row in on_the_way] == ["a0", "a1", "a2", "a3", "a4", "b0", "b1", "c0"]


def test_a_budget_keeps_the_newest(session):
    append_events(
        session=session, events=[GivenEvent("message", "x", id=f"e{i}", role="user", tokens=10) for i in range(9)]
    )

    window = get_window(session, max_tokens=35)

    assert [event.id for event in window.events] == ["e6", "e7", "e8"]
    assert not window.complete


@pytest.mark.parametrize("size", ["none", "tiny"])
@pytest.mark.parametrize("seed", range(12))
def test_any_tree_gives_the_windows_that_a_walk_over_parents_gives(session, workspace, seed, size, monkeypatch):
    """Random appends, branches, compactions, notes, rewinds and forks, compared with a rebuild from parent pointers."""
    if size == "tiny":
        pack_often(monkeypatch)
    dice = random.Random(seed)
    parents, kinds, heads = {}, {}, {"s1": None}
    sessions = {"s1": session}
    visible = {"s1": set()}
    for step in range(80):
        sid = dice.choice(list(sessions))
        known = [e for e in visible[sid] if kinds[e] != "note"]
        move = dice.random()
        if move < 0.1 and known:
            heads[sid] = dice.choice(known)
            rewind(session=sessions[sid], to=heads[sid])
        elif move < 0.15 and known and len(sessions) < 5:
            at, new = dice.choice(known), f"f{step}"
            sessions[new] = fork_session(workspace=workspace, session=sessions[sid], at=at, sid=new)
            heads[new] = at
            visible[new] = set(_way(at, parents))
        else:
            kind = dice.choices(["message", "compaction", "note"], [10, 1, 2])[0]
            parent = dice.choice(known) if known and dice.random() < 0.3 else None
            event_id = f"e{step}"
            append_events(session=sessions[sid], events=[say(event_id, parent=parent, kind=kind)])
            parents[event_id], kinds[event_id] = parent or heads[sid], kind
            visible[sid].add(event_id)
            if kind != "note":
                heads[sid] = event_id
    for sid, own in visible.items():
        for event_id in own:
            if kinds[event_id] == "note":
                continue
            expected = _way(event_id, parents)
            cut = max((i for i, e in enumerate(expected) if kinds[e] == "compaction"), default=0)
            assert window_ids(sessions[sid], at=event_id) == expected[cut:]
            some = dice.randint(1, 8)
            assert window_ids(sessions[sid], at=event_id, max_events=some) == expected[cut:][-some:]
        assert tree_queries.head_id(SessionTree.objects.filter(session=sessions[sid]).first()) == heads[sid]

    assert PackedHead.objects.exists() == (size == "tiny")


def _way(event_id, parents):
    way = []
    while event_id is not None:
        way.append(event_id)
        event_id = parents[event_id]
    return way[::-1]
