"""Retention, late prices and the check of the daily sums."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.core.management import call_command

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.models import DailyUsage, UsageRecord
from memoryhub.prompt_cache.queries import build_report
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.prompt_cache.services.tending import forget_old_usage, tend_ledger
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def fill(workspace: Workspace, *days_ago: int) -> None:
    reports = [
        UsageReport(
            message_id=f"m{days}",
            model="claude-opus-4-8",
            usage={"input_tokens": 5},
            started_at=NOW - timedelta(days=days),
        )
        for days in days_ago
    ]
    record_reports(workspace=workspace, reports=reports)


def test_old_usage_is_forgotten_with_its_sums(workspace: Workspace, other_workspace: Workspace, settings: Any) -> None:
    fill(workspace, 0, 10, 30, 31, 400)
    fill(other_workspace, 400)
    settings.USAGE_RETENTION_DAYS = 30

    with clock.frozen(NOW):
        done = tend_ledger(workspace=workspace)

    assert done == {"forgotten": 2}
    assert sorted(UsageRecord.objects.of(workspace).values_list("message_id", flat=True)) == ["m0", "m10", "m30"]
    assert check_rollups(workspace=workspace) == []
    assert build_report(workspace).totals.requests == 3
    assert UsageRecord.objects.of(other_workspace).count() == 1


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/Los_Angeles"])
def test_the_first_day_that_is_kept_keeps_its_quarters(workspace: Workspace, zone: str) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(time_zone=zone)
    workspace.refresh_from_db()
    first_kept = datetime.combine((NOW - timedelta(days=30)).date(), datetime.min.time(), ZoneInfo(zone))
    moments = [first_kept - timedelta(minutes=5), first_kept + timedelta(minutes=5)]
    record_reports(
        workspace=workspace,
        reports=[
            UsageReport(message_id=f"m{n}", model="claude-opus-4-8", usage={"input_tokens": 5}, started_at=moment)
            for n, moment in enumerate(moments)
        ],
    )

    with clock.frozen(NOW):
        assert forget_old_usage(workspace=workspace, days=30) == 1

    assert check_rollups(workspace=workspace) == []
    assert build_report(workspace, time_zone="UTC").totals.requests == 1
    assert DailyUsage.objects.filter(dimension="quarter", requests__gt=0).count() == 1


def test_without_a_retention_everything_stays(workspace: Workspace) -> None:
    fill(workspace, 4000)

    with clock.frozen(NOW):
        assert forget_old_usage(workspace=workspace, days=0) == 0
        assert tend_ledger(workspace=workspace) == {}

    assert UsageRecord.objects.count() == 1


def test_a_newer_price_list_prices_what_waited(workspace: Workspace) -> None:
    fill(workspace, 1)
    UsageRecord.objects.update(state=1, cost_pico=0, nocache_pico=0)
    call_command("check_ledger", "--rebuild")

    done = tend_ledger(workspace=workspace)

    assert done == {"newly_priced": 1}
    assert check_rollups(workspace=workspace) == []
    assert tend_ledger(workspace=workspace) == {}


def test_the_check_fails_where_sums_differ_and_mends_them(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(workspace, 1)
    DailyUsage.objects.filter(dimension="all").update(input_tokens=6)

    with pytest.raises(SystemExit) as stopped:
        call_command("check_ledger", "--workspace", workspace.name)
    call_command("check_ledger", "--rebuild")
    call_command("check_ledger")

    assert stopped.value.code == 1
    shown = capsys.readouterr().out
    assert "home: 1 sums differ" in shown
    assert shown.rstrip().endswith("home: 0 sums differ from the records")
