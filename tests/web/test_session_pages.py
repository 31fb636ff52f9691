"""Sessions, a session, the tool cache, invalidation: what they show, who may act, and that rows cost no queries."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryhub.common import clock
from memoryhub.flows.invalidate import announce_write
from memoryhub.long_term_memory.domain.rendering import RenderedMemory, render
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.session_cache.models import SessionEvent, ToolResult
from memoryhub.session_cache.queries.tree import find_tree, head_id
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.calls import ToolCall, parse_given
from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.policies import PolicyChoice, set_tool_policy
from memoryhub.session_cache.services.store import ToolValue, store_tool_result
from memoryhub.workspaces.principals import Actor
from memoryhub.workspaces.services import ensure_session

OWNER = Actor("user", "1", "owner")
HOSTILE = "<script>alert(1)</script>'\"><img src=x onerror=alert(2)>"


@pytest.fixture
def session(workspace):
    session = ensure_session(workspace=workspace, sid="run/1", agent="main", title="Fix the login", project="/w/web")
    say(session, "a", "b", "c")
    say(session, "d", parent="a")
    return session


def say(session, *ids, parent=None, text="text of "):
    append_events(
        session=session,
        events=[
            GivenEvent("message", text + id, id=id, role="user", parent_id=parent if i == 0 else None)
            for i, id in enumerate(ids)
        ],
    )


def put(session, number=1, tool="search", **more):
    if tool == "search":
        set_tool_policy(
            workspace=session.workspace, tool=tool, choice=PolicyChoice(cacheable=True, ttl_seconds=60), actor=OWNER
        )
    call = ToolCall(session.sid, tool, {"q": number})
    return store_tool_result(session=session, call=call, given=ToolValue("v", cost_ms=100, **more))


def test_sessions_are_listed_searched_and_narrowed(viewer, session, workspace):
    ensure_session(workspace=workspace, sid="other", agent="helper")

    assert "Fix the login" in viewer.get("/sessions").content.decode()
    assert "Fix the login" not in viewer.get("/sessions?agent=helper").content.decode()
    assert "Fix the login" in viewer.get("/sessions?q=login").content.decode()
    assert "No session matches" in viewer.get("/sessions?q=nowhere").content.decode()


def test_no_sessions_teach_with_a_command(viewer):
    page = viewer.get("/sessions").content.decode()

    assert "No sessions yet" in page
    assert "/api/v1/sessions/my-first-session/events" in page


def test_a_session_shows_its_way_its_branches_and_its_window(viewer, session):
    page = viewer.get("/sessions/run%2F1").content.decode()

    assert "text of d" in page
    assert "text of a" in page
    assert "text of c" not in page
    assert "another branch: 2 events" in page
    assert "mh-branches" in page
    old = viewer.get("/sessions/run%2F1?at=c").content.decode()
    assert "text of c" in old
    assert "text of d" not in old


def test_a_long_way_is_walked_back_page_by_page(viewer, workspace):
    session = ensure_session(workspace=workspace, sid="long")
    say(session, *[f"e{i:03d}" for i in range(95)])

    seen, url = [], "/sessions/long"
    while url:
        page = viewer.get(url)
        seen += [row.event_id for row in page.context["events"]]
        url = page.context["older_url"]

    assert seen == [f"e{i:03d}" for i in reversed(range(95))]


def test_the_window_is_counted_by_part(viewer, workspace):
    session = ensure_session(workspace=workspace, sid="parts")
    append_events(
        session=session,
        events=[
            GivenEvent("message", "old", id="z", role="user", tokens=1000),
            GivenEvent("message", "rules", id="s", role="system", tokens=10),
            GivenEvent("compaction", "summary", id="c", tokens=20),
            GivenEvent("message", "hi", id="a", role="user", tokens=30),
            GivenEvent("tool_use", {"id": "t", "name": "x", "input": {}}, id="b", tokens=40),
        ],
    )

    window = viewer.get("/sessions/parts").context["window"]

    assert {part["name"]: part["tokens"] for part in window["parts"]} == {
        "system": 10,
        "memories": 0,
        "summary": 20,
        "history": 30,
        "tools": 40,
    }
    assert window["is_compacted"]


def test_recalled_memories_are_a_part_of_their_own(viewer, workspace):
    """Inside the instructions and inside what a user sent: their bytes' share of the tokens, at both ends of a cut."""
    session = ensure_session(workspace=workspace, sid="recalls")
    block = render(
        [RenderedMemory("mem_1", 1, 'Likes "tabs" and 茶.'), RenderedMemory("mem_2", 3, "Deploys on Tuesdays.")]
    )
    instructions = "You review. " + block
    append_events(
        session=session,
        events=[
            GivenEvent("message", instructions, id="s", role="system", tokens=100),
            GivenEvent("message", [{"type": "text", "text": block}], id="u", role="user", tokens=50),
            GivenEvent("message", "<recalled_memories> is never closed", id="v", role="user", tokens=7),
        ],
    )

    def parts():
        return {part["name"]: part["tokens"] for part in viewer.get("/sessions/recalls").context["window"]["parts"]}

    before = parts()
    append_events(session=session, events=[GivenEvent("compaction", "in short", id="c", role="user", tokens=5)])
    after = parts()

    assert sum(before.values()) == 157
    assert 85 < 100 - before["system"] < 97
    assert 35 < before["memories"] - (100 - before["system"]) < 50
    assert (after["system"], after["memories"], after["summary"]) == (before["system"], 100 - before["system"], 5)


def test_the_window_says_what_the_last_request_had_cached_and_cost(viewer, session, workspace):
    url = "/sessions/run%2F1"
    assert viewer.get(url).context["request_facts"] is None

    def request(seconds, model, **usage):
        at = clock.now() + timedelta(seconds=seconds)
        report = UsageReport(message_id=f"m{seconds}", model=model, started_at=at, session="run/1", usage=usage)
        record_reports(workspace=workspace, reports=[report])

    request(-1000, "claude-opus-5-5", input_tokens=1000, output_tokens=0)
    request(10, "claude-opus-5-5", input_tokens=10_000, cache_read_input_tokens=90_000, output_tokens=0)
    page = viewer.get(url)
    facts = page.context["request_facts"]
    assert (facts["read"], facts["sent"], facts["width"]) == (90_000, 100_000, "900.0")
    assert facts["share"].startswith("90.0")
    assert facts["usd"].startswith("$0.0")
    assert f"It cost {facts['usd']}; caching saved {facts['saved_usd']}." in page.content.decode()
    earlier = viewer.get(f"{url}?at=b").context["request_facts"]
    assert earlier["sent"] == 1000, "of an event: the last request before it"

    request(20, "unheard-of", input_tokens=5, output_tokens=1)
    assert "Its model has no price yet." in viewer.get(url).content.decode()


def test_a_rewind_is_shown_first_then_done(editor, session):
    put(session)
    asked = editor.get("/sessions/run%2F1/rewind?to=a").content.decode()
    assert "1 event is left behind." in asked
    assert "1 tool result was seen after it" in asked
    assert head_id(find_tree(session)) == "d"

    done = editor.post("/sessions/run%2F1/rewind", {"to": "a"})

    assert done.status_code == 302
    assert head_id(find_tree(session)) == "a"


def test_a_fork_asks_for_its_name_and_refuses_a_taken_one(editor, session, workspace):
    say(ensure_session(workspace=workspace, sid="taken"), "x")

    assert editor.get("/sessions/run%2F1/fork?at=a").status_code == 200
    refused = editor.post("/sessions/run%2F1/fork", {"at": "a", "session": "taken"})
    assert refused.status_code == 422
    assert "has events already" in refused.content.decode()
    assert editor.post("/sessions/run%2F1/fork", {"at": "a", "session": "new"}).status_code == 302
    assert head_id(find_tree(ensure_session(workspace=workspace, sid="new"))) == "a"


def test_a_viewer_sees_no_control_and_may_not_act(viewer, session):
    put(session)
    for url in ("/sessions/run%2F1?at=a", "/invalidate?tool=search", "/tool-cache"):
        page = viewer.get(url).content.decode()
        assert 'method="post" action="/invalidate/run"' not in page
        assert "/rewind?to=" not in page
        assert "/tool-cache/policy?tool=" not in page
    assert viewer.post("/sessions/run%2F1/rewind", {"to": "a"}).status_code == 403
    assert viewer.post("/invalidate/run", {"tool": "search"}).status_code == 403
    assert viewer.get("/tool-cache/policy?tool=search").status_code == 403
    assert ToolResult.objects.count() == 1


def test_a_stranger_finds_nothing(stranger, session):
    put(session)

    assert stranger.get("/sessions/run%2F1").status_code == 404
    assert "Fix the login" not in stranger.get("/sessions").content.decode()
    assert "search" not in stranger.get("/tool-cache").context["tools"]
    assert stranger.get("/invalidate?tool=search").context["count"] == 0


def test_the_tool_cache_says_what_each_tool_saves(viewer, session):
    put(session)
    for _ in range(3):
        look_up(workspace=session.workspace, call=ToolCall(session.sid, "search", {"q": 1}), options=LookupOptions())
    look_up(workspace=session.workspace, call=ToolCall(session.sid, "search", {"q": 2}), options=LookupOptions())

    page = viewer.get("/tool-cache")

    (row,) = page.context["tools"]
    assert (row.figures.hits, row.figures.misses) == (3, 1)
    assert row.verdict_tone == "good"
    assert "pays" in page.content.decode()
    assert "absent" in str(row.top_miss)


def test_stored_results_are_searched(viewer, session):
    put(session, "tea and biscuits")
    put(session, "coffee")

    page = viewer.get("/tool-cache?q=BISCUIT&tool=search")

    assert [row.params for row in page.context["entries"]] == ['{"q":"tea and biscuits"}']
    assert 'name="tool" value="search"' in page.content.decode(), "the search keeps the filter"


def test_a_policy_is_changed_in_its_form(editor, workspace):
    form = {
        "tool": "grep", "cacheable": "on", "strategy": "ttl", "ttl_seconds": "5", "scope": "workspace",
        "invalidates": "", "error_ttl_seconds": "", "stale_while_revalidate_seconds": "", "verify_share": "0.5",
        "redact_params": "q, r",
    }  # fmt: skip

    assert editor.post("/tool-cache/policy", form).status_code == 302
    policy = workspace.tool_policies.get(tool="grep")
    assert (policy.strategy, policy.ttl_seconds, policy.scope, policy.redact_params) == (
        "ttl",
        5,
        "workspace",
        ["q", "r"],
    )
    refused = editor.post("/tool-cache/policy", {**form, "ttl_seconds": "-1"})
    assert refused.status_code == 422
    assert "ttl_seconds" in refused.context["form"].errors


def test_an_unknown_write_is_said_in_one_word(editor, session):
    """The entry has to be proven, the log says which tool ran, the policy's form can say otherwise."""
    put(session, depends_on=parse_given([{"kind": "file", "path": "/w/a"}]))
    assert "unknown_write" not in editor.get("/tool-cache").content.decode()

    announce_write(
        workspace=session.workspace, tool="shell", changes=(), actor=Actor("key", "1", "k"), door="api", anything=True
    )

    page = editor.get("/tool-cache").content.decode()
    assert "unknown_write: shell ran since" in page
    assert "to be proven" in page
    assert "Unknown write" in editor.get("/invalidate").content.decode()
    form = {
        "tool": "search",
        "cacheable": "on",
        "strategy": "hybrid",
        "scope": "session",
        "ignore_unknown_writes": "on",
    }
    assert editor.post("/tool-cache/policy", form).status_code == 302
    assert "to be proven" not in editor.get("/tool-cache").content.decode()


def test_an_invalidation_shows_exactly_what_goes(editor, session):
    put(session, 1), put(session, 2)
    other = put(session, 3).key

    preview = editor.get(f"/invalidate?tool=search&key={other}")
    assert preview.context["count"] == 1
    done = editor.post("/invalidate/run", {"tool": "search", "key": other, "reason": "wrong"}, follow=True)

    assert ToolResult.objects.count() == 2
    page = done.content.decode()
    assert "1 result was invalidated." in page
    assert "wrong" in page
    assert editor.post("/invalidate/run", {"reason": "all"}).status_code == 422


@pytest.mark.parametrize(
    "url", ["/sessions", "/sessions/hostile", "/tool-cache", "/invalidate?tool=search", "/sessions/hostile/fork"]
)
def test_stored_texts_are_only_texts(editor, workspace, url):
    session = ensure_session(
        workspace=workspace, sid="hostile", title=HOSTILE, agent=HOSTILE, project=HOSTILE, user=HOSTILE
    )
    append_events(session=session, events=[GivenEvent("message", HOSTILE, id=HOSTILE, role="user")])
    call = ToolCall(session.sid, "search", {"q": HOSTILE})
    put(session)
    store_tool_result(session=session, call=call, given=ToolValue(HOSTILE))

    page = editor.get(url).content.decode()

    assert "<script>alert(1)" not in page
    assert "<img src=x" not in page


def rows_of(kind, session, count):
    workspace = session.workspace
    if kind == "sessions":
        for i in range(count):
            other = ensure_session(workspace=workspace, sid=f"{kind}{i}", agent=f"agent{i}")
            append_events(session=other, events=[GivenEvent("message", "x", role="user")])
    elif kind == "events":
        for start in range(0, count, 500):
            more = [GivenEvent("message", f"x{start + i}", role="user") for i in range(min(500, count - start))]
            append_events(session=session, events=more)
    else:
        put(session)
        for i in range(count):
            call = ToolCall(session.sid, "search", {"i": i})
            store_tool_result(session=session, call=call, given=ToolValue("v"))


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("sessions", "/sessions"),
        ("events", "/sessions/run%2F1"),
        ("results", "/tool-cache"),
        ("results", "/invalidate?tool=search"),
    ],
)
def test_no_page_asks_the_database_per_row(viewer, session, kind, url):
    rows_of(kind, session, 10)
    viewer.get(url)
    with CaptureQueriesContext(connection) as few:
        viewer.get(url)
    rows_of(kind, session, 1000 if kind == "events" else 120)
    usage.flush()
    viewer.get(url)
    with CaptureQueriesContext(connection) as many:
        viewer.get(url)

    assert len(many) <= len(few) + 1
    assert SessionEvent.objects.exists()


def test_forks_of_other_sessions_are_linked(viewer, session, workspace):
    fork = fork_session(workspace=workspace, session=session, at="a", sid="branch-off")
    say(fork, "f1")

    page = viewer.get("/sessions/run%2F1").content.decode()

    assert "session branch-off: 1 event" in page


def test_extraction_is_queued_by_an_editor_and_says_when_it_can_not(editor, viewer, session, settings):
    settings.ANTHROPIC_API_KEY = ""
    refused = editor.post("/sessions/run%2F1/extract", {"at": "d"})
    assert refused.status_code >= 400
    settings.ANTHROPIC_API_KEY = "sk-test"
    queued = editor.post("/sessions/run%2F1/extract", {"at": "d"})

    assert queued.status_code == 302
    assert "/jobs/" in queued["Location"]
    assert viewer.post("/sessions/run%2F1/extract").status_code == 403
