"""Transcript lines become the tree, however messy they are."""

import random
from datetime import UTC, datetime

import pytest

from memoryhub.session_cache.models import Branch, SessionEvent
from memoryhub.session_cache.queries.tree import find_tree, head_id
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.session_cache.services import event_of_line, import_events
from memoryhub.workspaces.services import ensure_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(workspace):
    return ensure_session(workspace=workspace, sid="s1")


def line(uuid, parent=None, role="user", content="x", second=0, **more):
    return {
        "type": role,
        "uuid": uuid,
        "parentUuid": parent,
        "timestamp": f"2026-11-10T10:00:{second:02d}.000Z",
        "message": {"role": role, "content": content},
        **more,
    }


def bring(session, lines):
    events = [event for event in map(event_of_line, lines) if event is not None]
    return import_events(workspace=session.workspace, session=session, events=events)


def window_ids(session, at=None):
    return [event.id for event in get_window(session, at=at).events]


CALL = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "a"}}]
ANSWER = [{"type": "tool_result", "tool_use_id": "t1", "content": "text"}]
TALK = [
    line("u1", None, content="hello", second=1),
    line("a1", "u1", "assistant", [{"type": "text", "text": "hi"}], second=2),
    line("a2", "a1", "assistant", CALL, second=3),
    {"type": "progress", "uuid": "p1", "parentUuid": "a2", "timestamp": "2026-11-10T10:00:04Z"},
    line("u2", "p1", content=ANSWER, second=5),
    line("a3", "u2", "assistant", [{"type": "text", "text": "done"}], second=6),
]


def test_lines_chain_through_progress_records(session):
    report = bring(session, TALK)

    assert (report.created, report.known, report.orphans) == (6, 0, 0)
    window = get_window(session)
    assert [(e.id, e.kind, e.role) for e in window.events] == [
        ("u1", "message", "user"),
        ("a1", "message", "assistant"),
        ("a2", "tool_use", "assistant"),
        ("u2", "tool_result", "user"),
        ("a3", "message", "assistant"),
    ]
    assert window.unpaired.tool_uses == ()
    assert Branch.objects.count() == 1


def test_importing_again_changes_nothing(session):
    bring(session, TALK)

    again = bring(session, [*TALK, line("u3", "a3", second=7)])

    assert (again.created, again.known) == (1, 6)
    assert window_ids(session)[-1] == "u3"


def test_a_rewind_in_the_transcript_is_a_branch(session):
    bring(session, [*TALK, line("u3", "a1", content="rather this", second=8)])

    assert window_ids(session) == ["u1", "a1", "u3"]
    assert window_ids(session, at="a3") == ["u1", "a1", "a2", "u2", "a3"]


def test_a_compaction_boundary_cuts_the_window_and_keeps_the_past(session):
    boundary = {
        "type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "logicalParentUuid": "a3",
        "timestamp": "2026-11-10T10:00:09Z", "compactMetadata": {"trigger": "auto"},
    }  # fmt: skip
    summary = line("c1", "b1", content="what was said", second=10, isCompactSummary=True)

    bring(session, [*TALK, boundary, summary, line("u9", "c1", second=11)])

    assert window_ids(session) == ["c1", "u9"]
    assert SessionEvent.objects.get(event_id="c1").depth == 5


def test_sub_agents_are_side_branches_and_never_the_head(session):
    side = [
        line("x1", None, second=30, isSidechain=True),
        line("x2", "x1", "assistant", "y", second=31, isSidechain=True),
    ]

    bring(session, [*TALK, *side])

    assert head_id(find_tree(session)) == "a3"
    assert window_ids(session, at="x2") == ["x1", "x2"]


def test_orphans_and_circles_become_roots(session):
    report = bring(session, [line("o1", "gone"), line("c1", "c2"), line("c2", "c1"), line("s", "s")])

    assert report.created == 4
    assert report.orphans >= 2
    assert SessionEvent.objects.count() == 4


def test_an_older_file_imported_later_does_not_move_the_head_back(session):
    bring(session, [line("new", None, second=50)])

    bring(session, TALK)

    assert head_id(find_tree(session)) == "new"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_any_order_within_a_chunk_gives_the_same_windows(session, seed, cut):
    """Lines shuffled in one import; then the rest, in any cut, in file order."""
    first, rest = TALK[:cut], TALK[cut:]
    random.Random(seed).shuffle(first)

    bring(session, first)
    bring(session, rest)

    assert window_ids(session) == ["u1", "a1", "a2", "u2", "a3"]


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"uuid": 5, "type": "user", "message": {}},
        {"uuid": "x" * 500, "type": "user", "message": {"content": "y"}},
        {"uuid": "k1", "type": "user", "message": "text", "timestamp": "yesterday"},
        {"uuid": "k2", "type": None, "parentUuid": ["a"], "timestamp": 17},
        {
            "uuid": "k3",
            "type": "user",
            "message": {"role": "alien", "content": None},
            "timestamp": "2026-13-40T00:00:00Z",
        },
        {"uuid": "k4", "type": "assistant", "message": {"content": [None, 3, {"type": ["x"]}]}, "parentUuid": "k4"},
        {"uuid": "k5\0", "type": "user", "message": {"content": "y"}},
        {"uuid": "k6", "type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": {"a": 1}}]}},
        {"uuid": "k7", "type": "user", "message": {"content": 10**40}},
        {"uuid": "k8", "type": "user", "message": {"content": "half \ud800"}},
    ],
)
def test_a_messy_line_never_stops_the_file(session, bad):
    bring(session, [bad, line("good", None, second=2)])

    assert SessionEvent.objects.filter(event_id="good").exists()


def test_times_are_kept(session):
    bring(session, TALK)

    assert SessionEvent.objects.get(event_id="u1").occurred_at == datetime(2026, 11, 10, 10, 0, 1, tzinfo=UTC)
