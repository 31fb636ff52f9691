"""Tool results over the API: hits, misses by reason, policies, leases, proofs."""

import json
from datetime import timedelta
from urllib.parse import urlencode

import pytest

from memoryhub.common import clock
from memoryhub.session_cache.models import ToolResult, ToolSpace


@pytest.fixture
def cached(api):
    """A tool that may be cached."""
    api.put("/tool-policies/search", {"cacheable": True, "ttl_seconds": 600})
    return api


def put(api, value="v", tool="search", params=None, sid="s1", **more):
    return api.put(
        f"/sessions/{sid}/tool-results", {"tool": tool, "params": params or {"q": "a"}, "value": value, **more}
    )


def look(api, tool="search", params=None, sid="s1", **more):
    response = api.post(f"/sessions/{sid}/tool-results/lookup", {"tool": tool, "params": params or {"q": "a"}, **more})
    assert response.status_code == 200, response.content
    return response.json()


def test_a_result_comes_back_with_its_proof(cached):
    done = put(cached, {"a": [1, None, "é"]}, cost_ms=120).json()
    hit = look(cached)

    assert (done["stored"], done["size_bytes"]) == (True, len('{"a":[1,null,"é"]}'.encode()))
    assert hit["state"] == "hit"
    assert hit["value"] == {"a": [1, None, "é"]}
    assert hit["key"] == done["key"]
    assert hit["hit_count"] == 1
    assert hit["etag"] == done["etag"]
    assert hit["proof"]["verified_by"] == "ttl"
    assert len(hit["key"]) == 64


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, 10**30, 1.5, "\u2028 <script>", {"state": "miss"}])
def test_any_value_is_a_hit_and_comes_back_equal(cached, value):
    put(cached, value)

    hit = look(cached)

    assert hit["state"] == "hit"
    assert hit["value"] == value
    assert type(hit["value"]) is type(value)


def test_each_reason_of_a_miss(cached):
    assert look(cached)["reason"] == "absent"
    assert look(cached, tool="undeclared")["reason"] == "uncacheable"
    put(cached, ttl_seconds=0.000001)
    assert look(cached)["reason"] == "expired"
    put(cached, depends_on=[{"kind": "version", "name": "schema", "value": "1"}])
    assert look(cached, fingerprints=[{"kind": "version", "name": "schema", "value": "2"}])["reason"] == "stale"
    cached.post("/invalidations", {"tool": "search", "reason": "changed"})
    assert look(cached)["reason"] == "invalidated"


@pytest.mark.parametrize(
    ("policy", "more", "reason"),
    [
        (None, {}, "uncacheable"),
        ({"cacheable": False}, {}, "never_cache"),
        ({"cacheable": True}, {"ttl_seconds": 0}, "ttl_zero"),
        ({"cacheable": True, "ttl_seconds": 0}, {}, "ttl_zero"),
        ({"cacheable": True}, {"error": True}, "error"),
        ({"cacheable": True}, {"error": {"message": "boom"}}, "error"),
        ({"cacheable": True}, {"lease_token": "made up"}, "stale_lease"),
        ({"cacheable": True}, {"value": "x" * 300}, "too_large"),
    ],
)
def test_each_reason_of_a_refusal(api, policy, more, reason):
    api.put("/sessions/s1", {"tool_capacity_bytes": 1024})
    if policy:
        api.put("/tool-policies/search", policy)

    response = put(api, **more)

    assert response.status_code == 200
    assert response.json() == {"key": response.json()["key"], "stored": False, "reason": reason, "invalidated": 0}
    assert look(api)["state"] == "miss"


@pytest.mark.parametrize("more", [{"ttl_seconds": 0}, {"error": True}, {"value": "x" * 300}])
def test_a_refused_put_removes_the_old_value(cached, more):
    cached.put("/sessions/s1", {"tool_capacity_bytes": 1024})
    put(cached, "old")

    put(cached, **more)

    assert look(cached)["state"] == "miss"
    assert ToolSpace.objects.get(session__sid="s1").used_bytes == 0


def test_a_large_entry_is_refused_before_anything_is_evicted(cached):
    cached.put("/sessions/s1", {"tool_capacity_bytes": 1024})
    put(cached, "kept", params={"q": "kept"})

    assert put(cached, "x" * 1000).json()["reason"] == "too_large"

    assert look(cached, params={"q": "kept"})["state"] == "hit"


@pytest.mark.parametrize("ttl", [-1, -0.001, "soon", [], 1e300])
def test_a_ttl_that_makes_no_sense_is_422(cached, ttl):
    assert put(cached, ttl_seconds=ttl).status_code == 422
    assert cached.put("/tool-policies/other", {"cacheable": True, "ttl_seconds": ttl}).status_code == 422


def test_a_negative_ttl_is_422_for_undeclared_tools_too(api):
    assert put(api, ttl_seconds=-5).status_code == 422


def test_no_ttl_is_the_default_and_zero_is_not(cached):
    cached.put("/tool-policies/search", {"cacheable": True})

    put(cached)

    entry = ToolResult.objects.get()
    assert (entry.expires_at - entry.stored_at).total_seconds() == pytest.approx(600)


def test_storing_again_counts_the_size_once(cached):
    for value in ("aaaa", "bb", "c" * 50):
        put(cached, value)

    space = ToolSpace.objects.get(session__sid="s1")
    assert (space.used_bytes, space.entry_count) == (52, 1)
    assert look(cached)["value"] == "c" * 50


@pytest.mark.parametrize(
    ("stored", "asked", "same"),
    [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, False),
        ({"n": 0}, {"n": False}, False),
        ({"n": 1}, {"n": "1"}, False),
        ({"n": 10**20}, {"n": 10**20 + 1}, False),
        ({"n": 2**53}, {"n": float(2**53)}, False),
        ({"n": 0.0}, {"n": -0.0}, True),
        ({"n": None}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"p": "caf\u00e9"}, {"p": "cafe\u0301"}, False),
        ({"l": [1, 2]}, {"l": [2, 1]}, False),
        ({"l": [[], {}]}, {"l": [[], {}]}, True),
        ({"a": "b"}, {"a": "B"}, False),
    ],
)
def test_which_parameters_are_the_same(cached, stored, asked, same):
    put(cached, params=stored)

    assert (look(cached, params=asked)["state"] == "hit") == same


def test_equal_keys_of_different_parameters_are_no_hit(cached):
    """The parameters themselves are compared: were two calls ever to meet in one digest, neither gets the other's."""
    key = put(cached).json()["key"]
    ToolResult.objects.filter(key=key).update(params='{"q":"b"}')

    assert look(cached)["state"] == "miss"
    ToolResult.objects.filter(key=key).update(params='{"q":"a"}')
    assert look(cached)["state"] == "hit"


def test_an_entry_from_the_future_is_stale(cached):
    """The clock of the machine has been set back since it was stored."""
    with clock.frozen(clock.now() + timedelta(hours=1)):
        put(cached)

    assert look(cached)["reason"] == "stale"
    with clock.frozen(clock.now() + timedelta(hours=1)):
        assert look(cached)["state"] == "hit"


def test_what_belongs_to_the_key(cached):
    put(cached, tool_version="1", root="/w", env={"LANG": "C"})

    def state(**more):
        return look(cached, **{"tool_version": "1", "root": "/w", "env": {"LANG": "C"}, **more})["state"]

    assert state() == "hit"
    assert state(tool_version="2") == "miss"
    assert state(root="/w2") == "miss"
    assert state(env={"LANG": "zh"}) == "miss"
    assert look(cached, sid="s2", tool_version="1", root="/w", env={"LANG": "C"})["state"] == "miss"


def test_sharing_between_sessions_is_by_policy(api):
    api.put("/tool-policies/search", {"cacheable": True, "scope": "workspace"})

    put(api, sid="s1")

    assert look(api, sid="s2")["state"] == "hit"


def test_another_workspace_sees_nothing(cached, stranger_api):
    stranger_api.put("/tool-policies/search", {"cacheable": True, "scope": "workspace"})
    cached.put("/tool-policies/search", {"cacheable": True, "scope": "workspace"})
    key = put(cached).json()["key"]

    assert look(stranger_api)["state"] == "miss"
    assert stranger_api.delete(f"/sessions/s1/tool-results/{key}").status_code == 404
    assert stranger_api.post("/invalidations", {"key": key}).json()["matched"] == 0
    assert look(cached)["state"] == "hit"


def test_max_age_is_a_stricter_ttl(cached):
    put(cached)

    assert look(cached, max_age_seconds=100)["state"] == "hit"
    assert look(cached, max_age_seconds=0)["reason"] == "expired"
    response = cached.post("/sessions/s1/tool-results/lookup", {"tool": "search", "max_age_seconds": -1})
    assert response.status_code == 422


def test_stats_count_hits_misses_and_time(cached):
    look(cached)
    put(cached, cost_ms=200)
    look(cached)
    look(cached)
    look(cached, tool="undeclared")

    stats = cached.get("/sessions/s1/tool-results/stats").json()

    assert (stats["hits"], stats["misses"], stats["evictions"]) == (2, 2, 0)
    assert stats["saved_ms"] == pytest.approx(400)
    assert stats["bytes"] == 3
    assert stats["capacity_bytes"] == 50 * 1024 * 1024
    assert [(t["tool"], t["hits"], t["misses_by_reason"]) for t in stats["by_tool"]] == [
        ("search", 2, {"absent": 1}),
        ("undeclared", 0, {"uncacheable": 1}),
    ]


def test_the_list_shows_everything_but_the_value_and_hides_secrets(cached):
    put(cached, "the value", params={"q": "a", "api_key": "hunter2", "nested": {"access_token": "t"}})

    response = cached.get("/sessions/s1/tool-results?tool=search")

    (item,) = response.json()["items"]
    assert item["params"] == {"q": "a", "api_key": "[redacted]", "nested": {"access_token": "[redacted]"}}
    assert "hunter2" not in response.content.decode()
    assert "the value" not in response.content.decode()
    assert look(cached, params={"q": "a", "api_key": "hunter2", "nested": {"access_token": "t"}})["state"] == "hit"
    assert look(cached, params={"q": "a", "api_key": "other", "nested": {"access_token": "t"}})["state"] == "miss"


def test_results_are_found_by_what_is_in_their_parameters_and_dependencies(cached):
    put(cached, params={"q": "invoice 50%_off"})
    put(cached, params={"q": "发票"}, depends_on=[{"kind": "file", "path": "/w/Übersicht.md"}])
    put(cached, params={"password": "hunter2"})

    def found(text):
        items = cached.get(f"/sessions/s1/tool-results?{urlencode({'q': text})}").json()["items"]
        return [item["params"].get("q") for item in items]

    assert found("INVOICE") == ["invoice 50%_off"]
    assert found("50%_o") == ["invoice 50%_off"]
    assert found("发票") == found("/w/Üb") == ["发票"]
    assert found("hunter2") == [], "what is hidden is not found either"
    assert len(found("")) == 3


def test_removing_one_entry_by_key(cached):
    key = put(cached).json()["key"]

    assert cached.delete(f"/sessions/s1/tool-results/{key}").status_code == 204
    assert cached.delete(f"/sessions/s1/tool-results/{key}").status_code == 404
    assert look(cached)["reason"] == "invalidated"


def test_an_error_is_kept_for_the_seconds_that_the_policy_says(api):
    api.put("/tool-policies/search", {"cacheable": True, "error_ttl_seconds": 5})

    done = put(api, {"message": "not found"}, error=True).json()
    hit = look(api)

    assert done["stored"]
    assert hit["error"] is True
    entry = ToolResult.objects.get()
    assert (entry.expires_at - entry.stored_at).total_seconds() == pytest.approx(5)


def test_a_hit_writes_nothing(cached, django_assert_num_queries):
    put(cached)
    look(cached)

    with django_assert_num_queries(1) as captured:
        look(cached)

    assert all(query["sql"].lstrip().startswith("SELECT") for query in captured.captured_queries)


def test_a_sampled_hit_asks_to_be_verified_and_the_stale_rate_is_measured(api):
    api.put("/tool-policies/search", {"cacheable": True, "verify_share": 1})
    put(api, "old")

    hit = look(api)
    put(api, "new", verifies=hit["etag"])
    again = look(api)
    put(api, "new", verifies=again["etag"])

    assert hit["verify"] is True
    (row,) = api.get("/sessions/s1/tool-results/stats").json()["by_tool"]
    assert (row["verified"], row["stale_rate"]) == (2, 0.5)


def test_mcp_hints_are_a_policy(api):
    policy = api.put("/tool-policies/search", {"readOnlyHint": True, "ttlMs": 5000, "cacheScope": "public"}).json()

    assert (policy["cacheable"], policy["ttl_seconds"], policy["scope"]) == (True, 5.0, "workspace")
    assert api.put("/tool-policies/send", {"readOnlyHint": False, "ttlMs": 5000}).json()["cacheable"] is False


def test_policies_are_read_back_and_listed(api):
    assert api.get("/tool-policies/search").status_code == 404
    sent = {
        "cacheable": True, "ttl_seconds": 30, "strategy": "ttl", "scope": "session", "invalidates": ["x", "tag"],
        "error_ttl_seconds": 2, "stale_while_revalidate_seconds": 9,
    }  # fmt: skip

    api.put("/tool-policies/search", sent)

    assert {name: api.get("/tool-policies/search").json()[name] for name in sent} == sent
    assert [item["tool"] for item in api.get("/tool-policies").json()["items"]] == ["search"]


@pytest.mark.parametrize(
    "body",
    [
        {"strategy": "magic"},
        {"scope": "galaxy"},
        {"cacheable": "perhaps"},
        {"ttl": 5},
        {"error_ttl_seconds": -1},
        {"stale_while_revalidate_seconds": -1},
        {"verify_share": 1.5},
        {"invalidates": "read_file"},
    ],
)
def test_a_policy_that_makes_no_sense_is_422(api, body):
    assert api.put("/tool-policies/search", body).status_code == 422


def test_a_value_that_has_no_json_is_refused_not_lost(cached):
    body = b'{"tool":"search","params":{"q":"a"},"value":1e999}'

    response = cached.put("/sessions/s1/tool-results", body)

    assert response.status_code == 200
    assert response.json()["reason"] == "uncacheable"


def test_parameters_that_have_no_json_are_422(cached):
    response = cached.post("/sessions/s1/tool-results/lookup", b'{"tool":"search","params":{"q":1e999}}')

    assert response.status_code == 422


def test_deep_parameters_do_not_break_anything(cached):
    deep = json.loads("[" * 150 + "]" * 150)

    put(cached, params={"q": deep})

    assert look(cached, params={"q": deep})["state"] == "hit"
    bomb = b'{"tool":"search","params":' + b"[" * 500 + b"]" * 500 + b"}"
    assert cached.post("/sessions/s1/tool-results/lookup", bomb).status_code == 422


def test_a_reading_key_sees_hits_but_gets_no_lease_and_makes_no_session(cached, api_with):
    put(cached)
    reader = api_with("cache:read")

    assert look(reader)["state"] == "hit"
    assert look(reader, sid="new")["reason"] == "absent"
    assert reader.get("/sessions/new").status_code == 404
    body = {"tool": "search", "params": {"q": "b"}, "lease": True}
    assert reader.post("/sessions/s1/tool-results/lookup", body).status_code == 403
