"""GET /prompt-cache/report: groups, zones, CSV, and what is left out of sums."""

import csv
import io
from typing import Any

import pytest

from memoryhub.prompt_cache.models import DailyUsage
from tests.conftest import ApiClient
from tests.prompt_cache.makers import make_report, make_usage, plain_usage

M = 1_000_000
REPORT = "/prompt-cache/report"


@pytest.fixture
def filled(api: ApiClient) -> ApiClient:
    """Two projects, two models, an evening in UTC that is the next morning in Shanghai, and a model without a price."""
    reports = [
        make_report("m1"),
        make_report("m2", started_at="2026-11-10T20:00:00Z", usage=plain_usage(M), project="api", user="ben"),
        make_report(
            "m3", started_at="2026-11-12T01:00:00Z", model="claude-haiku-4-5", usage=plain_usage(M), session="s2"
        ),
        make_report("m4", started_at="2026-11-12T01:00:00Z", model="claude-opus-9", usage=plain_usage(77)),
        make_report("m5", usage={"input_tokens": -1, "output_tokens": 9}),
    ]
    assert api.post("/prompt-cache/usage", reports).status_code == 201
    return api


def rows_of(api: ApiClient, query: str) -> list[dict[str, Any]]:
    response = api.get(f"{REPORT}?{query}")
    assert response.status_code == 200, response.content
    return response.json()["rows"]


def test_the_whole_answer(filled: ApiClient) -> None:
    body = filled.get(f"{REPORT}?from=2026-11-10&to=2026-11-10&tz=UTC&group_by=day,project,model").json()

    assert body["rows"] == [
        {
            "day": "2026-11-10",
            "project": "api",
            "model": "claude-opus-5-5",
            "requests": 1,
            "input_tokens": M,
            "cache_write_5m_tokens": 0,
            "cache_write_1h_tokens": 0,
            "cache_read_tokens": 0,
            "output_tokens": 0,
            "cost_usd": "4.000000",
            "nocache_usd": "4.000000",
            "net_saving_usd": "0.000000",
            "hit_rate": 0.0,
        },
        {
            "day": "2026-11-10",
            "project": "web",
            "model": "claude-opus-5-5",
            "requests": 1,
            "input_tokens": 3,
            "cache_write_5m_tokens": 0,
            "cache_write_1h_tokens": 10_000,
            "cache_read_tokens": 20_000,
            "output_tokens": 5_000,
            "cost_usd": "0.184012",
            "nocache_usd": "0.220012",
            "net_saving_usd": "0.036000",
            "hit_rate": 20_000 / 30_003,
        },
    ]
    assert (body["totals"]["requests"], body["totals"]["cost_usd"]) == (2, "4.184012")
    assert (body["unpriced"], body["excluded"], body["tz"]) == ([], 1, "UTC")
    assert body["price_book_version"].startswith("pb_")


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("UTC", {"2026-11-10": "4.184012", "2026-11-12": "1.000000"}),
        ("Asia/Shanghai", {"2026-11-10": "0.184012", "2026-11-11": "4.000000", "2026-11-12": "1.000000"}),
        ("America/Los_Angeles", {"2026-11-10": "4.184012", "2026-11-11": "1.000000"}),
        ("Asia/Kolkata", {"2026-11-10": "0.184012", "2026-11-11": "4.000000", "2026-11-12": "1.000000"}),
    ],
)
def test_days_are_those_of_the_zone(filled: ApiClient, zone: str, days: dict[str, str]) -> None:
    assert {row["day"]: row["cost_usd"] for row in rows_of(filled, f"tz={zone}&group_by=day")} == days


@pytest.mark.parametrize(
    ("day", "zone", "start", "end"),
    [
        ("2026-03-08", "America/New_York", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
        ("2026-11-01", "America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        ("2026-03-29", "Asia/Beirut", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"),
    ],
)
def test_days_of_23_and_25_hours_hold_what_happened_in_them(
    api: ApiClient, day: str, zone: str, start: str, end: str
) -> None:
    edges = [start, end.replace("00:00Z", "00:00Z")]
    inside_last = end.replace(":00:00Z", ":00:00Z")
    reports = [
        make_report("first", started_at=edges[0], usage=plain_usage(1), model="claude-opus-4-8"),
        make_report("after", started_at=inside_last, usage=plain_usage(100), model="claude-opus-4-8"),
        make_report("before", started_at=_shifted(start), usage=plain_usage(1000), model="claude-opus-4-8"),
        make_report("last", started_at=_shifted(end), usage=plain_usage(10), model="claude-opus-4-8"),
    ]
    assert api.post("/prompt-cache/usage", reports).status_code == 201

    (row,) = rows_of(api, f"from={day}&to={day}&tz={zone}&group_by=day")

    assert row["input_tokens"] == 11


def _shifted(moment: str) -> str:
    """A second earlier."""
    from datetime import datetime, timedelta

    return (datetime.fromisoformat(moment) - timedelta(seconds=1)).isoformat()


@pytest.mark.parametrize(
    ("group", "costs"),
    [
        ("project", {"web": "1.184012", "api": "4.000000"}),
        ("model", {"claude-opus-5-5": "4.184012", "claude-haiku-4-5": "1.000000"}),
        ("user", {"ana": "1.184012", "ben": "4.000000"}),
        ("agent", {"main": "5.184012"}),
        ("session", {"s1": "4.184012", "s2": "1.000000"}),
    ],
)
def test_every_group_by_itself(filled: ApiClient, group: str, costs: dict[str, str]) -> None:
    rows = rows_of(filled, f"group_by={group}")

    assert {row[group]: row["cost_usd"] for row in rows} == costs
    assert all("day" not in row for row in rows)


def test_rollups_and_records_agree(filled: ApiClient, workspace: Any) -> None:
    for group in ("day", "day,project", "model,day", "user", "agent"):
        kept = rows_of(filled, f"tz=UTC&group_by={group}")
        computed = rows_of(filled, f"tz=Etc/UTC&group_by={group}")
        assert kept == computed


def test_a_model_without_a_price_stands_apart(filled: ApiClient) -> None:
    for zone in ("UTC", "Asia/Shanghai"):
        body = filled.get(f"{REPORT}?group_by=model&tz={zone}").json()
        assert body["unpriced"] == [{"model": "claude-opus-9", "tokens": 77, "requests": 1}]
        assert "claude-opus-9" not in {row["model"] for row in body["rows"]}
        assert body["totals"]["requests"] == 3


def test_csv_has_the_same_numbers_with_zone_and_version_in_front(filled: ApiClient) -> None:
    response = filled.get(f"{REPORT}?from=2026-11-01&to=2026-11-30&tz=Asia/Shanghai&group_by=day,model&format=csv")
    lines = list(csv.reader(io.StringIO(response.content.decode())))

    version = filled.get(REPORT).json()["price_book_version"]
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert lines[0] == ["# time zone", "Asia/Shanghai", "price book version", version]
    assert lines[1][:3] == ["day", "model", "requests"]
    assert lines[2][:2] == ["2026-11-10", "claude-opus-5-5"]
    assert dict(zip(lines[1], lines[2], strict=True))["cost_usd"] == "0.184012"
    assert ["# unpriced", "claude-opus-9", "tokens", "77"] in lines


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_name_becomes_a_formula(api: ApiClient, start: str) -> None:
    api.post("/prompt-cache/usage", make_report(project=f"{start}cmd|' /C calc'!A0"))

    lines = list(csv.reader(io.StringIO(api.get(f"{REPORT}?group_by=project&format=csv").content.decode(), newline="")))

    assert lines[2][0] == f"'{start}cmd|' /C calc'!A0"


def test_negative_savings_stay_numbers_in_the_csv(api: ApiClient) -> None:
    usage = {
        "input_tokens": 0,
        "cache_creation_input_tokens": M,
        "cache_creation": {"ephemeral_1h_input_tokens": M, "ephemeral_5m_input_tokens": 0},
    }
    api.post("/prompt-cache/usage", make_report(usage=usage))

    assert ",-4.000000," in api.get(f"{REPORT}?format=csv").content.decode()


@pytest.mark.parametrize(
    "query",
    [
        "tz=Mars/Olympus",
        "tz=../../etc/passwd",
        "tz=%00",
        "from=yesterday",
        "from=2026-13-01",
        "from=2026-1-1",
        "to=20261101",
        "from=0001-01-01",
        "from=9999-12-31",
        "from=2026-11-12&to=2026-11-10",
        "group_by=hour",
        "group_by=",
        "group_by=day,",
        "group_by=day,workspace",
        "group_by=id__gt",
        "format=xml",
    ],
)
def test_bad_questions_are_422(filled: ApiClient, query: str) -> None:
    response = filled.get(f"{REPORT}?{query}")

    assert response.status_code == 422, response.content
    assert response["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query", ["", "from=&to=&tz=&group_by=day", "from=2020-01-01&to=2020-01-02", "tz=Asia/Kolkata"]
)
def test_an_empty_ledger_is_an_empty_report(api: ApiClient, query: str) -> None:
    body = api.get(f"{REPORT}?{query}").json()

    assert (body["rows"], body["totals"]["hit_rate"], body["totals"]["cost_usd"]) == ([], None, "0.000000")


def test_a_hit_rate_without_a_prompt_is_null(api: ApiClient) -> None:
    api.post("/prompt-cache/usage", make_report(usage={"input_tokens": 0, "output_tokens": 5}))

    assert rows_of(api, "")[0]["hit_rate"] is None


def test_the_workspaces_own_zone_is_the_default(api: ApiClient, workspace: Any) -> None:
    workspace.time_zone = "Asia/Shanghai"
    workspace.save()
    api.post("/prompt-cache/usage", make_report(started_at="2026-11-10T20:00:00Z"))

    body = api.get(REPORT).json()

    assert (body["tz"], body["rows"][0]["day"]) == ("Asia/Shanghai", "2026-11-11")


def test_a_bound_key_sees_its_own_part(filled: ApiClient, api_with: Any) -> None:
    from memoryhub.workspaces.principals import Binding

    bound = api_with("usage:read", binding=Binding(project="api"))

    body = bound.get(f"{REPORT}?group_by=day").json()

    assert (body["totals"]["cost_usd"], body["unpriced"], body["excluded"]) == ("4.000000", [], 0)


def test_a_report_in_the_workspaces_zone_reads_rollups_only(
    filled: ApiClient, workspace: Any, django_assert_max_num_queries: Any
) -> None:
    from memoryhub.prompt_cache.queries import build_report

    assert DailyUsage.objects.filter(workspace=workspace, dimension="project").count() == 3
    with django_assert_max_num_queries(8):
        build_report(workspace, group_by=("day", "project"))


def test_requests_count_responses_not_iterations(api: ApiClient) -> None:
    usage = make_usage(iterations=[{"type": "compaction", "input_tokens": M}])
    api.post("/prompt-cache/usage", make_report(usage=usage))

    (row,) = rows_of(api, "group_by=model")

    assert (row["requests"], row["input_tokens"]) == (1, M + 3)


def test_centuries_between_two_records_cost_two_days(api: ApiClient, django_assert_max_num_queries: Any) -> None:
    reports = [
        make_report(f"m{year}", started_at=f"{year}-07-01T12:00:00Z", model="claude-opus-4-8") for year in (1970, 2200)
    ]
    api.post("/prompt-cache/usage", reports)

    with django_assert_max_num_queries(25):
        rows = rows_of(api, "tz=Asia/Kolkata&group_by=day,session")

    assert [row["day"] for row in rows] == ["1970-07-01", "2200-07-01"]
