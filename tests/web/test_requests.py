"""The requests behind the report's sums: the list, its file, and one request with its bill and what the doctor found."""

import csv
import io
from datetime import timedelta
from typing import Any
from unittest.mock import ANY

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from memoryhub.common import clock
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.queries import list_billed_parts
from memoryhub.workspaces.models import Workspace
from tests.web.test_doctor_and_planner import fill
from tests.web.test_report import TODAY, make_usage
from tests.web.test_report_findings import make_miss


def page(client: Client, address: str = "/requests") -> str:
    with clock.frozen(TODAY):
        answer = client.get(address)
    assert answer.status_code == 200, answer.content[:500]
    return answer.content.decode()


def test_requests_are_listed_the_newest_first(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 25, session="older")
    make_usage(workspace, 27, session="newer")

    shown = page(viewer)

    assert shown.index("newer") < shown.index("older")
    assert shown.count("$0.0900") == 2


@pytest.mark.parametrize(
    "narrowed",
    ["session=other", "model=claude-opus-5", "project=/w/x", "agent=writer", "from=2026-11-27&to=2026-11-27"],
)
def test_the_address_narrows_them(viewer: Client, workspace: Workspace, narrowed: str) -> None:
    make_usage(workspace, 25, session="mine")
    make_usage(workspace, 27, session="other", model="claude-opus-5", project="/w/x", agent="writer")

    shown = page(viewer, f"/requests?{narrowed}")

    assert "other" in shown
    assert ">mine<" not in shown


def test_a_miss_is_named_and_leads_to_its_request(viewer: Client, workspace: Workspace) -> None:
    miss = make_miss(workspace, 27, cause="tools_changed", fix="Sort the tools before sending.")

    assert "Tools changed" in page(viewer)
    one = page(viewer, f"/requests/{miss.record_id}")
    assert "Tools changed" in one
    assert "$0.480000" in one


def test_every_miss_of_the_doctor_leads_to_its_request(viewer: Client, api: Any) -> None:
    fill(api, 1)

    shown = viewer.get("/doctor").content.decode()

    for record in UsageRecord.objects.filter(diagnosis__reported=True):
        assert f'href="/requests/{record.pk}"' in shown


def test_one_request_shows_its_bill_line_by_line(viewer: Client, workspace: Workspace) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 1_000,
        "cache_read_input_tokens": 100_000,
        "cache_creation_input_tokens": 10_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 4_000, "ephemeral_1h_input_tokens": 6_000},
        "server_tool_use": {"web_search_requests": 2},
        "service_tier": "batch",
    }
    make_usage(workspace, 27, usage=usage)
    record = UsageRecord.objects.get()

    shown = page(viewer, f"/requests/{record.pk}")
    [part] = list_billed_parts(workspace, record)

    assert {line.kind: line.pico for line in part.lines} == {
        "input": 20_000_000,
        "cache_write_5m": 10_000_000_000,
        "cache_write_1h": 24_000_000_000,
        "cache_read": 10_000_000_000,
        "output": 10_000_000_000,
        "web_search": 20_000_000_000,
    }
    assert sum(line.pico for line in part.lines) == record.cost_pico
    assert "$0.024000" in shown
    assert "all at list price × 0.5" in shown


def test_what_is_billed_beside_a_response_stands_under_it(viewer: Client, workspace: Workspace) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "iterations": [
            {"type": "message", "input_tokens": 10, "output_tokens": 5},
            {"type": "advisor_message", "model": "claude-haiku-4-5", "input_tokens": 1_000, "output_tokens": 0},
        ],
    }
    make_usage(workspace, 27, usage=usage)

    shown = page(viewer, f"/requests/{UsageRecord.objects.get(part=0).pk}")

    assert "Advisor" in shown
    assert "$0.001000" in shown
    assert page(viewer).count("data-open-row") == 1


def test_a_request_without_a_price_has_no_dollars(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")

    shown = page(viewer, f"/requests/{UsageRecord.objects.get().pk}")

    assert "no price for this model" in shown
    assert "Nothing is priced here." in shown


def test_the_file_holds_every_request_with_exact_amounts(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 26)
    make_usage(workspace, 27, model="claude-zeta-9", session="=cmd()")

    rows = list(csv.reader(io.StringIO(page(viewer, "/requests?format=csv&tz=Asia/Shanghai"))))

    assert rows[0] == ["# time zone", "Asia/Shanghai", "from", ANY, "to", ANY]
    found = [dict(zip(rows[1], row, strict=True)) for row in rows[2:]]
    assert [(row["session"], row["cost_usd"]) for row in found] == [("'=cmd()", ""), ("s1", "0.090000")]
    assert found[1]["occurred_at"] == "2026-11-27T04:00:00+08:00"


def test_the_report_leads_to_the_requests_of_a_group(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27)

    shown = page(viewer, "/report?by=project&range=7d")

    link = "/requests?project=%2Fhome%2Fana%2Fweb&amp;from=2026-11-22&amp;to=2026-11-28&amp;tz=UTC"
    assert link in shown
    assert "data-open-row" in page(viewer, link.replace("&amp;", "&"))


def test_a_session_leads_to_its_requests(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, session="a/b c")

    shown = page(viewer, "/sessions/a%2Fb%20c")

    link = "/requests?session=a%2Fb%20c&amp;range=90d"
    assert link in shown
    assert page(viewer, link.replace("&amp;", "&")).count("data-open-row") == 1


def test_the_stranger_sees_none(stranger: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27)

    assert "data-open-row" not in page(stranger)
    assert stranger.get(f"/requests/{UsageRecord.objects.get().pk}").status_code == 404


def test_a_long_list_takes_as_many_queries_as_a_short_one(
    viewer: Client, workspace: Workspace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(40):
        make_usage(workspace, 27, session=f"s{number}")

    with clock.frozen(TODAY + timedelta(hours=1)), django_assert_max_num_queries(12):
        assert viewer.get("/requests").status_code == 200
