"""Invalidations over the API: selectors, dry runs, the log, the stream, and what is being computed meanwhile."""

import json

import pytest

from memoryhub.invalidation import streaming
from memoryhub.invalidation.models import InvalidationRecord
from memoryhub.session_cache.models import ToolResult, ToolSpace

FILE = {"kind": "file", "path": "/w/src/a.py", "size": 1, "mtime_ns": 1}
FOLDER = {"kind": "directory", "path": "/w/src", "sha256": "d"}
TAG = {"kind": "tag", "name": "deploy"}


@pytest.fixture
def stored(api):
    """Entries of four tools in two sessions."""
    for tool in ("read_file", "read_file_lines", "list_directory", "query"):
        api.put(f"/tool-policies/{tool}", {"cacheable": True, "strategy": "ttl"})
    api.post("/sessions/s1/events", {"id": "e1", "kind": "message", "role": "user", "content": "x"})
    put(api, "read_file", {"p": 1}, depends_on=[FILE])
    put(api, "read_file", {"p": 2}, sid="s2")
    put(api, "read_file_lines", {"p": 1})
    put(api, "list_directory", {"p": 1}, depends_on=[FOLDER])
    put(api, "query", {"q": 1}, depends_on=[TAG])
    return api


def put(api, tool, params, sid="s1", **more):
    done = api.put(f"/sessions/{sid}/tool-results", {"tool": tool, "params": params, "value": 1, **more})
    assert done.status_code in (200, 201), done.content
    return done.json()


def look(api, tool, params, sid="s1", **more):
    return api.post(f"/sessions/{sid}/tool-results/lookup", {"tool": tool, "params": params, **more}).json()


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ({"tool": "read_file"}, 2),
        ({"tool": "read"}, 0),
        ({"tool": "read_*"}, 3),
        ({"tool": "*"}, 5),
        ({"tool": "read_file", "session": "s1"}, 1),
        ({"session": "s2"}, 1),
        ({"session": "none"}, 0),
        ({"tool": "read_file", "params": {"p": 1}}, 1),
        ({"tool": "read_file", "params": {"p": 1.0}}, 1),
        ({"params": {"p": 1}}, 3),
        ({"tag": "deploy"}, 1),
        ({"tag": "depl"}, 0),
        ({"path": "/w/src/a.py"}, 2),
        ({"path": "/w/src/new.py"}, 1),
        ({"path": "/w"}, 2),
        ({"path": "/w/sr"}, 0),
        ({"path": "/w/src/a.pyc"}, 1),
        ({"event": "e1"}, 4),
    ],
)
def test_a_selector_takes_exactly_what_it_names(stored, selector, count):
    preview = stored.post("/invalidations", {**selector, "dry_run": True, "reason": "r"}).json()
    assert (preview["id"], preview["matched"], preview["invalidated"]) == (None, count, 0)
    assert ToolResult.objects.count() == 5

    done = stored.post("/invalidations", {**selector, "reason": "r"}).json()

    assert (done["matched"], done["invalidated"]) == (count, count)
    assert ToolResult.objects.count() == 5 - count
    sizes = sum(ToolResult.objects.values_list("size_bytes", flat=True))
    assert sum(ToolSpace.objects.values_list("used_bytes", flat=True)) == sizes


@pytest.mark.parametrize("body", [{}, {"reason": "all"}, {"dry_run": True}, {"tool": ""}, {"tool": None}, {"tool": 5}])
def test_no_selector_is_422(stored, body):
    assert stored.post("/invalidations", body).status_code == 422
    assert ToolResult.objects.count() == 5


def test_the_log_says_what_why_by_whom_and_how(stored):
    stored.post("/invalidations", {"tool": "query", "reason": "schema changed"})
    stored.post("/invalidations", {"path": "/w", "reason": "checkout"})
    stored.post("/invalidations", {"tool": "x", "dry_run": True})

    second, first = stored.get("/invalidations").json()["items"]

    assert (first["selector"], first["reason"], first["invalidated"]) == ({"tool": "query"}, "schema changed", 1)
    assert (first["strategy"], second["strategy"]) == ("manual", "event")
    assert (first["by"], first["by_kind"], first["door"]) == ("agent", "key", "api")
    assert second["epoch"] == first["epoch"] + 1


def test_a_value_computed_before_an_invalidation_is_not_stored_after_it(stored):
    lease = look(stored, "query", {"q": 2}, lease=True)["lease"]
    other = look(stored, "query", {"q": 3}, lease=True)["lease"]

    stored.post("/invalidations", {"tool": "query", "params": {"q": 2}})

    assert put(stored, "query", {"q": 2}, lease_token=lease["token"])["reason"] == "stale_lease"
    assert put(stored, "query", {"q": 3}, lease_token=other["token"])["stored"] is True
    assert look(stored, "query", {"q": 2}, lease=True)["state"] == "miss"


@pytest.mark.parametrize(
    ("change", "depends_on", "is_stored"),
    [
        ({"tag": "deploy"}, [TAG], False),
        ({"tag": "other"}, [TAG], True),
        ({"path": "/w/src/a.py"}, [FILE], False),
        ({"path": "/elsewhere"}, [FILE], True),
        ({"tool": "que*"}, [], False),
        ({"session": "s2"}, [], True),
    ],
)
def test_only_a_change_that_touches_the_value_refuses_it(stored, change, depends_on, is_stored):
    lease = look(stored, "query", {"q": 2}, lease=True)["lease"]

    stored.post("/invalidations", change)

    done = put(stored, "query", {"q": 2}, lease_token=lease["token"], depends_on=depends_on)
    assert done["stored"] == is_stored


def test_one_caller_computes_and_the_others_wait(stored):
    first = look(stored, "query", {"q": 2}, lease=True)
    second = look(stored, "query", {"q": 2}, lease=True)
    plain = look(stored, "query", {"q": 2})

    assert first["lease"]["token"]
    assert second["state"] == "wait"
    assert second["retry_after_seconds"] > 0
    assert (plain["state"], plain["lease"]) == ("miss", None)
    put(stored, "query", {"q": 2}, lease_token=first["lease"]["token"])
    assert look(stored, "query", {"q": 2}, lease=True)["state"] == "hit"


def test_a_lease_that_runs_out_passes_on_and_the_late_holder_is_refused(stored):
    first = look(stored, "query", {"q": 2}, lease=True, lease_seconds=0.001)["lease"]  # at least a second is given
    assert look(stored, "query", {"q": 2}, lease=True)["state"] == "wait"
    answer = look(stored, "query", {"q": 2}, lease=True, wait_seconds=5)

    assert answer["state"] == "miss"
    assert answer["lease"]["token"] != first["token"]
    assert put(stored, "query", {"q": 2}, lease_token=first["token"])["reason"] == "stale_lease"
    assert put(stored, "query", {"q": 2}, lease_token=answer["lease"]["token"])["stored"] is True


def test_a_holder_that_fails_gives_its_lease_back(stored):
    lease = look(stored, "query", {"q": 2}, lease=True)["lease"]

    assert put(stored, "query", {"q": 2}, lease_token=lease["token"], error=True)["reason"] == "error"

    assert look(stored, "query", {"q": 2}, lease=True)["state"] == "miss"


def test_a_lease_is_renewed_by_its_token_only(stored):
    lease = look(stored, "query", {"q": 2}, lease=True, lease_seconds=5)["lease"]
    renewed = look(stored, "query", {"q": 2}, lease=True, lease_seconds=50, lease_token=lease["token"])["lease"]

    assert renewed["token"] == lease["token"]
    assert renewed["expires_at"] > lease["expires_at"]
    assert look(stored, "query", {"q": 2}, lease=True, lease_token="made up")["state"] == "wait"


def test_a_write_tool_invalidates_what_it_declares_even_when_it_fails(stored):
    stored.put("/tool-policies/edit_file", {"cacheable": False, "invalidates": ["read_*", "deploy"]})

    done = put(stored, "edit_file", {"p": 1}, error=True)

    assert (done["stored"], done["reason"], done["invalidated"]) == (False, "never_cache", 4)
    assert [entry.tool for entry in ToolResult.objects.all()] == ["list_directory"]
    record = InvalidationRecord.objects.order_by("id").first()
    assert (record.strategy, record.reason, record.selector) == ("event", "edit_file failed", {"tool_or_tag": "read_*"})


def test_a_read_that_began_before_a_write_is_not_stored_after_it(stored):
    stored.put("/tool-policies/edit_file", {"cacheable": False, "invalidates": ["read_file"]})
    lease = look(stored, "read_file", {"p": 9}, lease=True)["lease"]

    put(stored, "edit_file", {"p": 9})

    assert put(stored, "read_file", {"p": 9}, lease_token=lease["token"])["reason"] == "stale_lease"


def test_files_must_be_proven_and_a_change_is_noticed(api):
    api.put("/tool-policies/read", {"cacheable": True})
    put(api, "read", {"p": 1}, depends_on=[FILE])

    unproven = look(api, "read", {"p": 1})
    assert unproven["state"] == "validate"
    assert unproven["depends_on"] == [FILE]
    proven = look(api, "read", {"p": 1}, fingerprints=unproven["depends_on"])
    assert (proven["state"], proven["proof"]["verified_by"]) == ("hit", "fingerprint")
    assert look(api, "read", {"p": 1}, fingerprints=[{**FILE, "mtime_ns": 0}])["reason"] == "stale"
    assert (
        look(api, "read", {"p": 1}, fingerprints=[{"kind": "file", "path": "/w/src/a.py", "size": 1}])["state"]
        == "validate"
    )


def test_the_hub_looks_at_files_below_its_own_roots(api, settings, tmp_path):
    settings.FILE_ROOTS = [str(tmp_path)]
    path = tmp_path / "a"
    path.write_text("x")
    found = path.stat()
    outside = {"kind": "file", "path": "/etc/hostname", "size": 1, "mtime_ns": 1}
    seen = {"kind": "file", "path": str(path), "size": found.st_size, "mtime_ns": found.st_mtime_ns}
    api.put("/tool-policies/read", {"cacheable": True})
    put(api, "read", {"p": 1}, depends_on=[seen])
    put(api, "read", {"p": 2}, depends_on=[seen, outside])

    assert look(api, "read", {"p": 1})["proof"]["verified_by"] == "fingerprint"
    assert look(api, "read", {"p": 2})["state"] == "validate"
    path.write_text("longer")
    assert look(api, "read", {"p": 1})["reason"] == "stale"


@pytest.mark.parametrize(
    "bad",
    [
        [{"kind": "file"}],
        [{"kind": "nothing", "path": "/a"}],
        [{"kind": "file", "path": "/a", "size": "1"}],
        [{"kind": "tag", "name": "x", "extra": 1}],
        "files",
        [5],
    ],
)
def test_dependencies_that_make_no_sense_are_422(api, bad):
    api.put("/tool-policies/read", {"cacheable": True})

    body = {"tool": "read", "params": {}, "value": 1, "depends_on": bad}
    assert api.put("/sessions/s1/tool-results", body).status_code == 422
    body = {"tool": "read", "params": {}, "fingerprints": bad}
    assert api.post("/sessions/s1/tool-results/lookup", body).status_code == 422


class TestAfterARewind:
    @pytest.fixture
    def rewound(self, api):
        """A result seen at `c`; then the session goes back to `a`."""
        api.put("/tool-policies/query", {"cacheable": True})
        say(api, "s1", "a", "b")
        put(api, "query", {"q": "early"})
        say(api, "s1", "c")
        put(api, "query", {"q": "late"})
        put(api, "query", {"q": "file"}, depends_on=[FILE])
        return api

    def test_results_of_the_abandoned_future_do_not_hit(self, rewound):
        assert look(rewound, "query", {"q": "late"})["state"] == "hit"
        rewound.post("/sessions/s1/rewind", {"to": "b"})

        assert look(rewound, "query", {"q": "early"})["state"] == "hit"
        assert look(rewound, "query", {"q": "late"})["reason"] == "stale"

    def test_unless_a_fingerprint_proves_them_now(self, rewound):
        rewound.post("/sessions/s1/rewind", {"to": "b"})

        assert look(rewound, "query", {"q": "file"})["state"] == "validate"
        assert look(rewound, "query", {"q": "file"}, fingerprints=[FILE])["state"] == "hit"

    def test_going_forward_again_brings_them_back(self, rewound):
        rewound.post("/sessions/s1/rewind", {"to": "a"})
        rewound.post("/sessions/s1/rewind", {"to": "c"})

        assert look(rewound, "query", {"q": "late"})["state"] == "hit"

    def test_a_new_branch_has_its_own_result(self, rewound):
        rewound.post("/sessions/s1/rewind", {"to": "b"})
        say(rewound, "s1", "d")
        put(rewound, "query", {"q": "late"})

        assert look(rewound, "query", {"q": "late"})["proof"]["source_event"] == "d"
        rewound.post("/sessions/s1/rewind", {"to": "c"})
        assert look(rewound, "query", {"q": "late"})["state"] == "miss"

    def test_a_fork_sees_the_results_of_its_past_only(self, rewound):
        rewound.post("/sessions/s1/fork", {"at": "b", "session": "f1"})

        assert look(rewound, "query", {"q": "early"}, sid="f1")["state"] == "hit"
        assert look(rewound, "query", {"q": "late"}, sid="f1")["state"] == "miss"
        rewound.post("/sessions/s1/fork", {"at": "c", "session": "f2"})
        assert look(rewound, "query", {"q": "late"}, sid="f2")["state"] == "hit"


def say(api, sid, *ids):
    events = [{"id": id, "kind": "message", "role": "user", "content": id} for id in ids]
    assert api.post(f"/sessions/{sid}/events", events).status_code == 201


def test_an_entry_past_its_time_is_served_while_one_computes_it_anew(api):
    api.put("/tool-policies/query", {"cacheable": True, "stale_while_revalidate_seconds": 60})
    put(api, "query", {"q": 1}, ttl_seconds=0.000001)

    first = look(api, "query", {"q": 1}, lease=True)
    others = look(api, "query", {"q": 1}, lease=True)
    plain = look(api, "query", {"q": 1})

    assert (first["state"], first["reason"]) == ("miss", "expired")
    assert first["lease"]
    assert (others["state"], others["stale"]) == ("hit", True)
    assert (plain["state"], plain["stale"]) == ("hit", True)


def read(workspace, after, count):
    events = streaming.events(workspace.pk, after=after, lifetime_seconds=0.2)
    found = []
    for raw in events:
        text = raw.decode()
        if text.startswith("event:"):
            name, number, data = (line.partition(": ")[2] for line in text.strip().split("\n"))
            found.append((name, int(number), json.loads(data)))
        if len(found) == count:
            break
    events.close()
    return found


def test_the_stream_begins_with_the_epoch_and_brings_what_was_missed(stored, workspace):
    stored.post("/invalidations", {"tool": "query", "reason": "one"})
    stored.post("/invalidations", {"tag": "deploy", "reason": "two"})

    (hello,) = read(workspace, None, 1)
    assert hello == ("hello", 2, {"epoch": 2})
    names = [(name, number, data.get("selector")) for name, number, data in read(workspace, 0, 3)]
    assert names == [("hello", 2, None), ("invalidation", 1, {"tool": "query"}), ("invalidation", 2, {"tag": "deploy"})]
    assert [name for name, _, _ in read(workspace, 99, 2)] == ["hello", "reset"]


def test_the_stream_is_open_to_readers_only(stored, api_with, stranger_api):
    assert api_with("usage:read").get("/invalidations/stream").status_code == 403
    response = stored.get("/invalidations/stream")

    assert response["Content-Type"] == "text/event-stream"
    assert next(iter(response.streaming_content)).startswith(b"event: hello")
    response.close()
