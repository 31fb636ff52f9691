"""What single requests add to the report: misses by cause in dollars, unread writes, and what to change."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import Client

from memoryhub.common import clock
from memoryhub.prompt_cache.models import Diagnosis, UsageRecord
from memoryhub.workspaces.models import Workspace
from tests.web.test_report import TODAY, make_usage


def make_miss(workspace: Workspace, day: int, **changes: Any) -> Diagnosis:
    make_usage(workspace, day, session=f"s{day}-{changes.get('cause', '')}")
    record = UsageRecord.objects.latest("id")
    facts: dict[str, Any] = {
        "cause": "ttl_expired",
        "verdict": "miss",
        "basis": "usage",
        "missed_tokens": 100_000,
        "missed_pico": 480_000_000_000,
        "reported": True,
    }
    kept = {"workspace": workspace, "occurred_at": record.occurred_at, "model": record.model, "created_at": TODAY}
    diagnosis, _ = Diagnosis.objects.update_or_create(record=record, defaults={**kept, **facts, **changes})
    return diagnosis


def _page(client: Client, query: str = "") -> str:
    with clock.frozen(TODAY):
        return client.get(f"/report{query}").content.decode()


def test_misses_are_summed_by_cause_the_dearest_first(viewer: Client, workspace: Workspace) -> None:
    make_miss(workspace, 25)
    make_miss(workspace, 26)
    make_miss(workspace, 27, cause="tools_changed", missed_pico=100_000_000_000)

    page = _page(viewer)

    chart = page.split("chart-misses-title")[-1].split("<tbody>")[1]
    assert chart.index("Lifetime over") < chart.index("Tools changed")
    assert "$0.96" in chart


def test_advice_leads_to_the_requests_of_its_cause(viewer: Client, workspace: Workspace) -> None:
    make_miss(workspace, 27, cause="tools_changed")

    page = _page(viewer, "?range=7d")

    assert "Send the same tools, byte for byte" in page
    assert "/doctor?cause=tools_changed&amp;from=2026-11-22&amp;to=2026-11-28" in page


def test_a_cause_that_nobody_can_change_is_no_advice(viewer: Client, workspace: Workspace) -> None:
    make_miss(workspace, 27, cause="unknown")

    assert "What would save the most" not in _page(viewer)


def test_misses_below_the_threshold_and_of_other_days_are_left_out(viewer: Client, workspace: Workspace) -> None:
    make_miss(workspace, 27, reported=False)
    make_miss(workspace, 2)

    assert 'id="chart-misses-title"' not in _page(viewer, "?range=7d")


def test_unread_writes_are_shown_with_their_premium(viewer: Client, workspace: Workspace) -> None:
    started = datetime(2026, 11, 27, 10, 0, tzinfo=UTC)
    make_usage(workspace, 27, message_id="a", started_at=started, agent="main")
    nothing_read = {
        "input_tokens": 5,
        "output_tokens": 1,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
    }
    make_usage(workspace, 27, message_id="b", started_at=started + timedelta(hours=3), agent="main", usage=nothing_read)

    page = _page(viewer)

    assert "Unread writes" in page
    assert "$0.0100" in page  # 10,000 tokens at a quarter of 4 dollars per million


def test_the_stranger_sees_no_miss(stranger: Client, workspace: Workspace) -> None:
    make_miss(workspace, 27)

    assert 'id="chart-misses-title"' not in _page(stranger)
