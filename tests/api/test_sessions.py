"""Sessions over the API: description, events, windows, rewind and fork."""

import pytest

from memoryhub.long_term_memory.models import Memory
from memoryhub.workspaces.principals import Binding


def say(id, role="user", kind="message", **more):
    return {"id": id, "kind": kind, "role": role, "content": f"text {id}", **more}


@pytest.fixture
def talk(api):
    """A session with three events."""
    api.post("/sessions/s1/events", [say("a"), say("b", "assistant"), say("c")])
    return api


def test_describing_a_session_is_idempotent_and_partial(api):
    first = api.put("/sessions/s1", {"agent": "main", "user": "ana", "project": "/w/web", "metadata": {"k": 1}}).json()
    again = api.put("/sessions/s1", {"title": "Fix"}).json()

    assert first["sid"] == "s1"
    assert (again["agent"], again["user"], again["project"], again["title"]) == ("main", "ana", "/w/web", "Fix")
    assert again["metadata"] == {"k": 1}
    assert again["created_at"].endswith("Z")
    assert api.get("/sessions/s1").json()["agent"] == "main"
    assert api.get("/sessions/none").status_code == 404


def test_sessions_are_listed_and_narrowed(api):
    for i in range(5):
        api.put(f"/sessions/s{i}", {"agent": "main" if i % 2 else "other", "project": f"p{i}"})

    assert len(api.get("/sessions").json()["items"]) == 5
    assert {item["sid"] for item in api.get("/sessions?agent=main").json()["items"]} == {"s1", "s3"}
    assert [item["sid"] for item in api.get("/sessions?project=p2").json()["items"]] == ["s2"]
    assert api.get("/sessions?since=2100-01-01T00:00:00Z").json()["items"] == []
    page = api.get("/sessions?limit=2").json()
    rest = api.get(f"/sessions?limit=2&cursor={page['next_cursor']}").json()
    assert not {i["sid"] for i in page["items"]} & {i["sid"] for i in rest["items"]}


def test_events_are_appended_one_by_one_in_lists_and_with_an_expected_head(api):
    one = api.post("/sessions/s1/events", say("a"))
    two = api.post("/sessions/s1/events", [say("b"), say("c")])
    three = api.post("/sessions/s1/events", {"events": [say("d")], "expected_head": "c"})
    late = api.post("/sessions/s1/events", {"events": [say("e")], "expected_head": "c"})

    assert one.status_code == 201
    assert one.json() == {"items": [{"id": "a", "parent_id": None, "depth": 0}], "head": "a"}
    assert two.json()["items"] == [{"id": "b", "parent_id": "a", "depth": 1}, {"id": "c", "parent_id": "b", "depth": 2}]
    assert three.json()["head"] == "d"
    assert late.status_code == 409
    assert late.json()["head"] == "d"


def test_an_event_without_an_id_gets_one(api):
    item = api.post("/sessions/s1/events", {"kind": "message", "role": "user", "content": "x"}).json()["items"][0]

    assert item["id"].startswith("evt_")


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"kind": "message"},
        {"kind": "progress", "content": "x"},
        {"kind": "message", "content": "x", "tokens": -1},
        {"kind": "message", "content": "x", "id": ""},
        {"kind": "message", "content": "x", "id": "x" * 201},
        {"kind": "message", "content": "x", "occurred_at": "2026-11-29T10:00:00"},
        {"kind": "message", "content": "x", "extra": 1},
        {"events": [], "expected_head": None},
        [say("x", parent_id="nowhere")],
        [say("x", parent_id="y"), say("y", parent_id="x")],
        [say("x"), say("x")],
        [{"kind": "message", "content": str(i)} for i in range(1001)],
    ],
)
def test_what_can_not_be_appended_is_422_and_nothing_is_stored(api, body):
    assert api.post("/sessions/s1/events", body).status_code == 422
    listed = api.get("/sessions/s1/events")
    assert listed.status_code == 404 or listed.json()["items"] == []


def test_the_same_id_with_another_content_is_409(talk):
    assert talk.post("/sessions/s1/events", say("a")).status_code == 201
    assert talk.post("/sessions/s1/events", {**say("a"), "content": "else"}).status_code == 409


def test_the_window_in_both_formats(api):
    use = {"type": "tool_use", "id": "t1", "name": "read", "input": {"z": 1, "a": 2}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    events = [
        {"id": "s", "kind": "message", "role": "system", "content": "be kind"},
        say("a"),
        {"id": "u", "kind": "tool_use", "content": use},
        {"id": "r", "kind": "tool_result", "content": result},
    ]
    api.post("/sessions/s1/events", events)

    window = api.get("/sessions/s1/context").json()
    raw = api.get("/sessions/s1/context?format=raw&at=a").json()

    assert window["system"] == "be kind"
    assert window["messages"] == [
        {"role": "user", "content": "text a"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    assert window["at"] == "r"
    assert window["unpaired"] == {"tool_uses": [], "tool_results": []}
    assert [event["id"] for event in raw["events"]] == ["s", "a"]
    assert api.get("/sessions/s1/context?at=u").json()["unpaired"]["tool_uses"] == ["t1"]


def test_the_same_node_gives_the_same_bytes(talk):
    before = talk.get("/sessions/s1/context?at=b").content
    talk.post("/sessions/s1/events", [say("d"), say("e", parent_id="a")])
    talk.post("/sessions/s1/rewind", {"to": "b"})

    assert talk.get("/sessions/s1/context?at=b").content == before
    assert talk.get("/sessions/s1/context").content == before


def test_a_window_of_nothing_is_empty(api):
    api.put("/sessions/s1", {})

    assert api.get("/sessions/s1/context").json()["messages"] == []
    assert api.get("/sessions/s1/context?at=x").status_code == 404


def test_pages_of_events(talk):
    seen, cursor = [], ""
    while cursor is not None:
        page = talk.get(f"/sessions/s1/events?limit=2&cursor={cursor}").json()
        seen += [(item["id"], item["parent_id"], item["content"]) for item in page["items"]]
        cursor = page["next_cursor"]

    assert seen == [("a", None, "text a"), ("b", "a", "text b"), ("c", "b", "text c")]
    assert talk.get("/sessions/s1/events?cursor=nonsense").status_code == 422


def test_a_rewind_names_the_memories_from_what_is_left_behind(talk):
    def remember(content, **more):
        body = {"content": content, "scope": {"agent": "main"}, "session": "s1", **more}
        return talk.post("/memories", body).json()["items"][0]["id"]

    kept = remember("from b", event="b")
    gone = remember("from c", event="c")

    shown = talk.post("/sessions/s1/rewind", {"to": "b", "dry_run": True}).json()
    assert talk.get("/sessions/s1").json()["head"] == "c"
    done = talk.post("/sessions/s1/rewind", {"to": "b"}).json()

    assert shown["memories_after"] == done["memories_after"] == [gone]
    assert done["head"] == "b"
    assert kept not in done["memories_after"]
    assert Memory.objects.count() == 2


def test_a_rewind_to_nowhere_is_refused(talk):
    assert talk.post("/sessions/s1/rewind", {"to": "nowhere"}).status_code == 422
    assert talk.post("/sessions/s1/rewind", {}).status_code == 422


def test_a_fork_over_the_api(talk):
    fork = talk.post("/sessions/s1/fork", {"at": "b", "session": "f1"})
    talk.post("/sessions/f1/events", say("d"))

    assert fork.status_code == 201
    assert (fork.json()["session"], fork.json()["head"]) == ("f1", "b")
    assert [m["content"] for m in talk.get("/sessions/f1/context").json()["messages"]] == ["text a", "text b", "text d"]
    assert [m["content"] for m in talk.get("/sessions/s1/context").json()["messages"]] == ["text a", "text b", "text c"]
    assert talk.post("/sessions/s1/fork", {"at": "a", "session": "f1"}).status_code == 409
    assert talk.post("/sessions/s1/fork", {"at": "nowhere", "session": "f2"}).status_code == 422


def test_a_stranger_finds_nothing(talk, stranger_api):
    assert stranger_api.get("/sessions").json()["items"] == []
    for method, path, body in [
        ("GET", "/sessions/s1", None),
        ("GET", "/sessions/s1/events", None),
        ("GET", "/sessions/s1/context", None),
        ("POST", "/sessions/s1/rewind", {"to": "a"}),
        ("POST", "/sessions/s1/fork", {"at": "a", "session": "x"}),
        ("GET", "/sessions/s1/tool-results", None),
        ("GET", "/sessions/s1/tool-results/stats", None),
    ]:
        assert stranger_api.call(method, path, body).status_code == 404, path


def test_a_bound_key_stays_within_its_binding(talk, api_with):
    talk.put("/sessions/s1", {"agent": "main"})
    helper = api_with("cache:write", binding=Binding(agent="helper"))

    assert helper.get("/sessions/s1").status_code == 404
    assert helper.post("/sessions/s1/events", say("x")).status_code == 404
    assert helper.post("/sessions/s1/tool-results/lookup", {"tool": "t"}).status_code == 404
    assert helper.put("/sessions/own", {}).json()["agent"] == "helper"
    assert helper.put("/sessions/own", {"agent": "main"}).status_code == 403
    assert [item["sid"] for item in helper.get("/sessions").json()["items"]] == ["own"]
