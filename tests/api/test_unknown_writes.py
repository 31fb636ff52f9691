"""A tool that nobody has declared may have changed any file: what was stored before it has to prove its files."""

import pytest

from memoryhub.invalidation.models import InvalidationRecord
from memoryhub.session_cache.models import ToolResult

FILE = {"kind": "file", "path": "/w/a.py", "size": 7, "mtime_ns": 5}
FOLDER = {"kind": "directory", "path": "/w/src", "sha256": "ab"}
BARE = {"kind": "file", "path": "/w/a.py"}
TAG = {"kind": "tag", "name": "deploy"}


def policy(api, tool="read", **more):
    done = api.put(f"/tool-policies/{tool}", {"cacheable": True, **more})
    assert done.status_code == 200, done.content


def put(api, tool="read", **more):
    done = api.put("/sessions/s1/tool-results", {"tool": tool, "params": {"p": 1}, "value": 1, **more})
    assert done.status_code in (200, 201), done.content
    return done.json()


def look(api, tool="read", **more):
    return api.post("/sessions/s1/tool-results/lookup", {"tool": tool, "params": {"p": 1}, **more}).json()


def run_shell(api, **more):
    answer = put(api, "shell", **more)
    assert (answer["stored"], answer["reason"], answer["invalidated"]) == (False, "uncacheable", 0)


@pytest.mark.parametrize("strategy", ["ttl", "manual", "dependency", "hybrid", "event", "fingerprint"])
@pytest.mark.parametrize("depends_on", [[FILE], [FOLDER], [TAG, FILE]])
def test_files_have_to_be_proven_after_it_whatever_the_strategy(api, strategy, depends_on):
    policy(api, strategy=strategy)
    put(api, depends_on=depends_on)
    run_shell(api)

    asked = look(api)
    assert asked["state"] == "validate"
    if strategy in ("ttl", "manual", "dependency"):  # the others ask for a proof of files anyway
        assert (asked["because"], asked["changed_by"]) == ("unknown_write", "shell")
    assert asked["depends_on"] == depends_on
    proven = look(api, fingerprints=[FILE, FOLDER])
    assert (proven["state"], proven["proof"]["verified_by"]) == (
        "hit",
        "hash" if depends_on == [FOLDER] else "fingerprint",
    )
    assert look(api, fingerprints=[{**FILE, "size": 8}, {**FOLDER, "sha256": "cd"}])["reason"] == "stale"


@pytest.mark.parametrize("more", [{}, {"depends_on": [TAG]}, {"depends_on": [{"kind": "version", "name": "n"}]}])
def test_what_depends_on_no_file_stays_a_hit(api, more):
    policy(api, "search")
    put(api, "search", **more)
    run_shell(api)

    assert look(api, "search")["state"] == "hit"


def test_a_result_of_a_folder_without_a_named_file_is_computed_anew(api):
    """A search by TTL alone: it was made of files, and nothing says of which."""
    policy(api, "grep", ttl_seconds=60)
    put(api, "grep", root="host:/w")
    assert look(api, "grep", root="host:/w")["state"] == "hit"
    run_shell(api)

    missed = look(api, "grep", root="host:/w")
    assert (missed["state"], missed["reason"], missed["because"]) == ("miss", "stale", "unknown_write")
    put(api, "grep", root="host:/w")
    assert look(api, "grep", root="host:/w")["state"] == "hit"


def test_a_file_that_nothing_proves_is_asked_for_until_it_is_computed_anew(api):
    policy(api, strategy="ttl")
    put(api, depends_on=[BARE])
    run_shell(api)

    assert look(api, fingerprints=[FILE])["state"] == "validate"
    assert look(api, fingerprints=[FILE], max_age_seconds=0)["state"] == "miss"
    put(api, depends_on=[BARE])
    assert look(api)["state"] == "hit"


def test_a_value_that_was_being_computed_meanwhile_is_not_trusted_either(api):
    """Read before the shell ran, stored after it: its lease says when it began."""
    policy(api, strategy="ttl")
    token = look(api, lease=True)["lease"]["token"]
    run_shell(api)

    assert put(api, depends_on=[FILE], lease_token=token)["stored"]
    assert look(api)["because"] == "unknown_write"
    assert look(api, fingerprints=[FILE])["state"] == "hit"


@pytest.mark.parametrize(
    ("declared", "is_trusted"),
    [
        ({"cacheable": False}, True),  # declared, and it names nothing
        ({"cacheable": False, "invalidates": ["other"]}, True),
        ({"cacheable": False, "may_change_anything": True}, False),
        ({"cacheable": False, "may_change_anything": True, "invalidates": ["other"]}, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": False}, False),  # MCP: it writes, and does not say what
        ({"readOnlyHint": False, "invalidates": ["other"]}, True),
        ({"readOnlyHint": False, "may_change_anything": False}, True),
    ],
)
def test_a_policy_says_what_a_run_may_change(api, declared, is_trusted):
    policy(api, strategy="ttl")
    assert api.put("/tool-policies/shell", declared).status_code == 200
    put(api, depends_on=[FILE])
    put(api, "shell")

    assert look(api)["state"] == ("hit" if is_trusted else "validate")


def test_results_can_be_declared_to_stand(api):
    policy(api, strategy="ttl", ignore_unknown_writes=True)
    put(api, depends_on=[FILE])
    run_shell(api)

    assert look(api)["state"] == "hit"
    assert api.get("/tool-policies/read").json()["ignore_unknown_writes"] is True


def test_a_failed_run_counts_too_and_the_log_says_so(api):
    policy(api, strategy="ttl")
    put(api, depends_on=[FILE])
    run_shell(api, error="exit 1")

    assert look(api)["because"] == "unknown_write"
    line = api.get("/invalidations").json()["items"][0]
    assert line["selector"] == {"unknown_write": "shell"}
    assert line["reason"] == "shell failed; what it changes is not declared"
    assert (line["strategy"], line["door"], line["invalidated"]) == ("event", "api", 0)


def test_runs_in_a_row_are_one_line_of_the_log(api):
    policy(api, strategy="ttl")
    put(api, depends_on=[FILE])
    for _ in range(5):
        run_shell(api)
    put(api, depends_on=[FILE])
    run_shell(api)
    assert InvalidationRecord.objects.count() == 1
    assert look(api)["state"] == "validate", "each run counts"

    api.post("/invalidations", {"tag": "x"})
    run_shell(api)
    assert InvalidationRecord.objects.count() == 3


def test_without_anything_stored_nothing_is_written(api):
    run_shell(api)

    assert not InvalidationRecord.objects.exists()


def test_it_concerns_the_workspace_and_no_other(api, stranger_api):
    for caller in (api, stranger_api):
        policy(caller, strategy="ttl")
        put(caller, depends_on=[FILE])
    run_shell(stranger_api)

    assert look(api)["state"] == "hit"
    assert look(stranger_api)["state"] == "validate"


def test_nothing_is_dropped_by_it(api):
    policy(api, strategy="ttl")
    put(api, depends_on=[FILE])
    run_shell(api)

    assert ToolResult.objects.count() == 1


def test_what_may_change_anything_is_not_cached(api):
    done = api.put("/tool-policies/shell", {"cacheable": True, "may_change_anything": True})

    assert (done.status_code, done.json()["title"]) == (422, "This tool policy breaks a rule")
