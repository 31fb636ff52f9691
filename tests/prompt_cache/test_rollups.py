"""Daily sums: right after any history of records, in any zone, and rebuilt when the zone changes."""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.models import DailyUsage, LedgerState, UsageRecord
from memoryhub.prompt_cache.queries import build_report
from memoryhub.prompt_cache.queries.records import latest_record_at
from memoryhub.prompt_cache.queries.report import summarize_costs
from memoryhub.prompt_cache.services.rollups import check_rollups, rebuild_rollups
from memoryhub.prompt_cache.services.tending import tend_ledger
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from tests.factories import make_workspace

START = datetime(2026, 10, 20, tzinfo=UTC)

reports = st.builds(
    UsageReport,
    message_id=st.sampled_from([f"m{n}" for n in range(6)]),
    model=st.sampled_from(["claude-opus-5-5", "claude-haiku-4-5", "claude-opus-9"]),
    started_at=st.integers(0, 21 * 24 * 60).map(lambda minutes: START + timedelta(minutes=minutes)),
    project=st.sampled_from(["", "web", "api"]),
    agent=st.sampled_from(["", "main"]),
    user=st.sampled_from(["", "ana", "ben"]),
    session=st.sampled_from(["", "s1", "s2"]),
    usage=st.fixed_dictionaries(
        {"input_tokens": st.integers(-1, 50)},
        optional={
            "output_tokens": st.integers(0, 50),
            "cache_read_input_tokens": st.integers(0, 50),
            "cache_creation_input_tokens": st.integers(0, 50),
            "service_tier": st.sampled_from(["standard", "batch"]),
        },
    ),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(reports, min_size=1, max_size=4), min_size=1, max_size=4), data=st.data())
def test_any_history_leaves_the_sums_of_the_records(db: Any, batches: list[list[UsageReport]], data: Any) -> None:
    home = make_workspace(f"home-{Workspace.objects.count()}", time_zone="America/New_York")
    for batch in batches:
        record_reports(workspace=home, reports=batch)

    zones = ["America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Europe/London", "UTC"]
    zone = data.draw(st.sampled_from(zones))
    groups = data.draw(
        st.lists(st.sampled_from(["day", "project", "model", "user", "session"]), min_size=1, unique=True)
    )

    assert check_rollups(workspace=home) == []
    report = build_report(home, time_zone=zone, group_by=groups)
    assert {tuple(row.keys.values()): row.sums.cost_pico for row in report.rows} == brute_force(home, zone, groups)
    assert report.totals.cost_pico == sum(row.cost_pico for row in UsageRecord.objects.of(home).priced())


def brute_force(workspace: Workspace, zone: str, groups: list[str]) -> dict[tuple[Any, ...], int]:
    sums: dict[tuple[Any, ...], int] = {}
    for record in UsageRecord.objects.of(workspace).priced():
        day = record.occurred_at.astimezone(ZoneInfo(zone)).date()
        key = tuple(day if name == "day" else getattr(record, name) for name in groups)
        if record.prompt_tokens or record.output_tokens or not record.part:
            sums[key] = sums.get(key, 0) + record.cost_pico
    return sums


def one_report(message_id: str = "m1", **changes: Any) -> UsageReport:
    values = {"model": "claude-opus-5-5", "usage": {"input_tokens": 5}, "started_at": START, "message_id": message_id}
    return UsageReport(**{**values, **changes})


def test_a_changed_zone_is_served_exactly_and_then_rebuilt(workspace: Workspace) -> None:
    record_reports(workspace=workspace, reports=[one_report(started_at=datetime(2026, 11, 10, 20, tzinfo=UTC))])
    workspace.time_zone = "Asia/Shanghai"
    workspace.save()
    record_reports(workspace=workspace, reports=[one_report("m2")])

    before = build_report(workspace)
    job = Job.objects.get(kind="tend_ledger")
    done = tend_ledger(workspace=workspace)

    assert job.workspace == workspace
    assert done["daily_sums"] == 14  # six by day for each of the two, and two quarters of an hour
    assert LedgerState.objects.get(workspace=workspace).time_zone == "Asia/Shanghai"
    assert build_report(workspace).rows == before.rows
    assert check_rollups(workspace=workspace) == []


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago", "Europe/London"])
def test_days_of_another_zone_are_added_up_from_quarters(workspace: Workspace, zone: str) -> None:
    moments = [START + timedelta(minutes=37 * n) for n in range(1_200)]  # a month, with the change of several clocks
    record_reports(
        workspace=workspace, reports=[one_report(f"m{n}", started_at=moment) for n, moment in enumerate(moments)]
    )

    with CaptureQueriesContext(connection) as queries:
        report = build_report(workspace, time_zone=zone)

    assert {tuple(row.keys.values()): row.sums.cost_pico for row in report.rows} == brute_force(
        workspace, zone, ["day"]
    )
    summed = [one["sql"] for one in queries.captured_queries if "SUM(" in one["sql"] and "cost_pico" in one["sql"]]
    assert len(summed) == 1
    assert "usagerecord" not in summed[0]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_days_that_are_full_to_the_brim_are_added_up_exactly(workspace: Workspace, zone: str) -> None:
    """One day's money may fill its column; three days' would not fit into it."""
    days = [START + timedelta(days=n) for n in range(3)]
    record_reports(workspace=workspace, reports=[one_report(f"m{n}", started_at=day) for n, day in enumerate(days)])
    most = 9 * 10**18 - 1
    DailyUsage.objects.filter(workspace=workspace).update(cost_pico=most, nocache_pico=most - 7)

    summary = summarize_costs(workspace, first=days[0].date(), last=days[-1].date(), time_zone=zone, sessions=False)

    assert (summary.totals.cost_pico, summary.totals.nocache_pico) == (3 * most, 3 * (most - 7))
    assert [day.sums.cost_pico for day in summary.days] == [most] * 3


def test_a_ledger_without_quarters_is_answered_from_its_records_and_summed_up_by_its_job(workspace: Workspace) -> None:
    record_reports(workspace=workspace, reports=[one_report(f"m{n}") for n in range(3)])
    DailyUsage.objects.filter(dimension="quarter").delete()  # as before there were any
    migration = import_module("memoryhub.prompt_cache.migrations.0005_quarters")
    migration.ask_for_new_sums(apps, None)

    assert check_rollups(workspace=workspace) == []
    meanwhile = build_report(workspace, time_zone="Asia/Kathmandu")
    tend_ledger(workspace=workspace)

    assert meanwhile.totals.requests == 3
    assert build_report(workspace, time_zone="Asia/Kathmandu").rows == meanwhile.rows
    assert check_rollups(workspace=workspace) == []


def test_the_ledger_knows_when_something_new_came(workspace: Workspace, other_workspace: Workspace) -> None:
    first, later = START, START + timedelta(hours=1)
    with clock.frozen(first):
        record_reports(workspace=workspace, reports=[one_report()])
    with clock.frozen(later):
        record_reports(workspace=workspace, reports=[one_report()])  # told again

    assert latest_record_at(workspace) == first
    assert latest_record_at(other_workspace) is None

    LedgerState.objects.update(last_arrival_at=None)
    import_module("memoryhub.prompt_cache.migrations.0006_last_arrival").note_arrivals(apps, None)
    assert latest_record_at(workspace) == first


def test_a_tampered_sum_is_found_and_mended(workspace: Workspace) -> None:
    record_reports(workspace=workspace, reports=[one_report()])
    DailyUsage.objects.filter(dimension="all").update(input_tokens=F("input_tokens") + 1)
    DailyUsage.objects.filter(dimension="user").delete()

    differences = check_rollups(workspace=workspace)
    rebuild_rollups(workspace=workspace)

    assert len(differences) == 2
    assert check_rollups(workspace=workspace) == []


def test_a_lost_sum_does_not_stop_the_ledger(workspace: Workspace) -> None:
    record_reports(workspace=workspace, reports=[one_report(project="web")])
    DailyUsage.objects.all().delete()

    record_reports(
        workspace=workspace, reports=[one_report(usage={"input_tokens": 1, "output_tokens": 9}, project="api")]
    )
    report = build_report(workspace, group_by=["project"])
    tend_ledger(workspace=workspace)

    assert [row.sums.output_tokens for row in report.rows] == [9]
    assert check_rollups(workspace=workspace) == []


def test_a_day_that_no_longer_fits_is_refused_whole(workspace: Workspace) -> None:
    from memoryhub.prompt_cache.services.rollups import LedgerFullError

    dear = [one_report(f"m{n}", usage={"input_tokens": 10**10}) for n in range(300)]

    with pytest.raises(LedgerFullError):
        record_reports(workspace=workspace, reports=dear)

    assert not UsageRecord.objects.exists()
    assert not DailyUsage.objects.exists()
