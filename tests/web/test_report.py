"""The cost report: its figures are the ledger's, its state is its address."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace

TODAY = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def make_usage(workspace: Workspace, day: int, **changes: Any) -> None:
    """One request of opus 5.5 that reads 100,000 tokens and writes 10,000: 0.02 + 0.05 + 0.02 dollars."""
    facts: dict[str, Any] = {
        "message_id": f"msg_{day}_{changes.get('model', '')}_{changes.get('session', '')}",
        "model": "claude-opus-5-5",
        "started_at": datetime(2026, 11, day, 20, 0, tzinfo=UTC),
        "session": "s1",
        "project": "/home/ana/web",
        "usage": {
            "input_tokens": 0,
            "output_tokens": 1000,
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 10_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 10_000, "ephemeral_1h_input_tokens": 0},
        },
    }
    record_reports(workspace=workspace, reports=[UsageReport(**{**facts, **changes})])


def _page(client: Client, query: str = "") -> str:
    with clock.frozen(TODAY):
        answer = client.get(f"/report{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def _figure(page: str, name: str) -> dict[str, Any]:
    found = re.search(rf'<script id="chart-{name}-figure" type="application/json">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


def test_the_page_shows_what_was_spent_and_saved(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27)

    page = _page(viewer)

    assert "$0.0900" in page  # 100,000 * 0.2 + 10,000 * 5 + 1,000 * 20 dollars per million
    assert "$0.46" in page  # 110,000 * 4 + 1,000 * 20
    assert "90.9 %" in page


def test_the_charts_draw_the_numbers_of_their_tables(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 26)
    make_usage(workspace, 27)

    figure = _figure(_page(viewer, "?range=7d"), "cost")

    assert figure["data"][1]["x"][0] == "2026-11-22"
    assert [round(y, 6) for y in figure["data"][1]["y"]] == [0, 0, 0, 0, 0.09, 0.09, 0]
    assert "template" not in figure["layout"]


def test_a_day_without_requests_is_a_gap_in_the_hit_rate_and_not_a_zero(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 26)

    rates = _figure(_page(viewer, "?range=7d"), "hit-rate")["data"][0]["y"]

    assert rates[0] is None
    assert rates[4] == pytest.approx(100 / 110)


def test_a_year_is_shown_by_weeks_that_add_up_to_the_same(viewer: Client, workspace: Workspace) -> None:
    for day in (1, 2, 9, 27):
        make_usage(workspace, day)

    page = _page(viewer, "?from=2025-11-29&to=2026-11-28")
    drawn = _figure(page, "cost")["data"][1]

    assert drawn["x"][0] == "2025-11-29"
    assert drawn["x"][-1] == "2026-11-23"
    assert len(drawn["x"]) == 53
    assert [round(y, 2) for y in drawn["y"] if y] == [0.09, 0.09, 0.09, 0.09]
    assert _figure(page, "saving")["data"][0]["y"][-1] == pytest.approx(4 * (0.46 - 0.09))
    assert "Week from" in page
    assert "· by week ·" in page
    assert "by week" not in _page(viewer, "?range=90d")
    assert len(page) < 200_000


def test_days_are_cut_in_the_zone_of_the_address(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 26)  # 20:00 UTC is the 27th in Shanghai

    figure = _figure(_page(viewer, "?from=2026-11-26&to=2026-11-27&tz=Asia/Shanghai"), "cost")

    assert [bool(y) for y in figure["data"][1]["y"]] == [False, True]


def test_the_period_before_is_compared_unless_told_otherwise(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 18)
    make_usage(workspace, 26)
    make_usage(workspace, 27)

    assert "▲ 100 %" in _page(viewer, "?range=7d")
    assert "▲ 100 %" not in _page(viewer, "?range=7d&compare=none")


def test_an_unpriced_model_is_named_with_its_tokens_and_no_dollars(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27, model="claude-zeta-9")

    page = _page(viewer)

    assert "claude-zeta-9" in page
    assert "111 k tokens" in page
    assert "$0.00" in page


@pytest.mark.parametrize("group", ["model", "project", "agent", "user", "session"])
def test_the_breakdown_alone_answers_htmx(viewer: Client, workspace: Workspace, group: str) -> None:
    make_usage(workspace, 27, agent="main", user="ana")

    with clock.frozen(TODAY):
        part = viewer.get(
            f"/report?by={group}", headers={"HX-Request": "true", "HX-Target": "breakdown"}
        ).content.decode()

    assert part.lstrip().startswith("<section")
    assert "<html" not in part
    assert "100.0 %" in part


@pytest.mark.parametrize(
    "query",
    [
        "?from=nonsense",
        "?from=2026-13-45&to=x",
        "?tz=No/Where",
        "?tz=../../etc",
        "?from=0001-01-01&to=9999-12-31",
        "?range=<script>&by=<b>",
        "?from=2026-11-20&to=2026-11-01",
    ],
)
def test_an_address_that_makes_no_sense_shows_a_report_all_the_same(
    viewer: Client, workspace: Workspace, query: str
) -> None:
    make_usage(workspace, 27)

    page = _page(viewer, query)

    assert "<script>&" not in page
    assert "Cost report" in page


def test_the_queries_do_not_grow_with_the_ledger(
    viewer: Client, workspace: Workspace, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for day in range(1, 28):
        make_usage(workspace, day, session=f"s{day}")
    _page(viewer)

    with django_assert_max_num_queries(40):
        _page(viewer)


def test_the_stranger_sees_nothing_of_it(stranger: Client, workspace: Workspace) -> None:
    make_usage(workspace, 27)

    assert "$0.0900" not in _page(stranger)


def test_a_negative_saving_is_shown_as_such(viewer: Client, workspace: Workspace) -> None:
    wasted = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 1_000_000,
    }
    make_usage(workspace, 27, usage={**wasted, "cache_creation": {"ephemeral_1h_input_tokens": 1_000_000}})

    assert "−$4.00" in _page(viewer)


def test_the_report_says_what_changed_and_why(viewer: Client, workspace: Workspace) -> None:
    """Two requests instead of one, of which one reads nothing."""
    make_usage(workspace, 18, project="/w/steady")
    make_usage(workspace, 26, project="/w/steady")
    usage = {"input_tokens": 110_000, "output_tokens": 1000, "cache_read_input_tokens": 0}
    make_usage(workspace, 27, project="/w/new", usage=usage, session="s2")

    page = _page(viewer, "?range=7d&by=project")

    card = page.split('id="change-title"')[1].split("</section>")[0]
    assert "More requests" in card
    assert "1 → 2" in card
    assert "The cache saved less" in card
    assert "hit rate 90.9 % → 45.5 %" in card
    assert "+$0.0900" in card  # as many as before, each as before
    assert "+$0.37" in card  # 110,000 at the input price instead of 0.09
    assert card.index(">new<") < card.index("</ul>", card.index(">new<"))
    assert "+$0.46" in card  # the new project, all of it
    assert "What changed" not in _page(viewer, "?range=7d&compare=none")
    assert "What changed" not in _page(viewer, "?from=2026-11-18&to=2026-11-18")


def test_each_group_says_how_much_dearer_it_became(viewer: Client, workspace: Workspace) -> None:
    make_usage(workspace, 18, project="/w/a")
    make_usage(workspace, 26, project="/w/a")
    make_usage(workspace, 27, project="/w/a", session="s2")

    page = _page(viewer, "?range=7d&by=project")

    assert '<td class="mh-num mh-down">+$0.0900</td>' in page
    assert "Change</th>" not in _page(viewer, "?range=7d&by=project&compare=none")
    assert "Change</th>" not in _page(viewer, "?range=7d&by=session")
    assert "Change</th>" not in _page(viewer, "?from=2026-11-18&to=2026-11-18&by=project")  # nothing before
