"""What misses cost by cause: the same sums whichever way a database takes, over days and workspaces."""

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from memoryhub.prompt_cache.models import Diagnosis, UsageRecord
from memoryhub.prompt_cache.queries.miss_causes import sum_misses_by_cause
from memoryhub.prompt_cache.queries.sums import Span
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace
from tests.prompt_cache.test_rollups import one_report

pytestmark = pytest.mark.django_db
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
CAUSES = ["tools_changed", "system_changed", "ttl_expired", "of a later version", ""]


def diagnose(workspace: Workspace, count: int) -> None:
    """One request every five hours, each with a diagnosis; every seventh is not reported, every fifth has no price."""
    reports = [one_report(f"{workspace.name}-{n}", started_at=FIRST + timedelta(hours=5 * n)) for n in range(count)]
    record_reports(workspace=workspace, reports=reports)
    Diagnosis.objects.filter(workspace=workspace).delete()
    records = UsageRecord.objects.filter(workspace=workspace).order_by("id")
    Diagnosis.objects.bulk_create(
        Diagnosis(
            record=record,
            workspace=workspace,
            occurred_at=record.occurred_at,
            model=record.model,
            verdict="miss",
            cause=CAUSES[n % len(CAUSES)],
            basis="hashes",
            missed_tokens=1_000 + n,
            missed_pico=None if n % 5 == 4 else n * 10**9,
            reported=n % 7 != 6,
            created_at=record.occurred_at,
        )
        for n, record in enumerate(records)
    )


@pytest.mark.parametrize(
    ("zone", "first", "last"), [("UTC", 1, 30), ("Asia/Kolkata", 3, 9), ("America/New_York", 5, 5)]
)
def test_sums_by_cause_are_those_of_the_rows(
    workspace: Workspace, other_workspace: Workspace, zone: str, first: int, last: int
) -> None:
    diagnose(workspace, 60)
    diagnose(other_workspace, 5)
    span = Span(date(2026, 11, first), date(2026, 11, last), ZoneInfo(zone))
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for one in Diagnosis.objects.filter(workspace=workspace, reported=True):
        if span.start <= one.occurred_at < span.end:
            sums = expected[one.cause]
            sums[0] += 1
            sums[1] += one.missed_tokens
            sums[2] += one.missed_pico or 0

    found = sum_misses_by_cause(workspace, span)

    assert {one.cause: [one.count, one.missed_tokens, one.missed_pico] for one in found} == dict(expected)
    assert [one.missed_pico for one in found] == sorted((one.missed_pico for one in found), reverse=True)


def test_a_workspace_without_misses_has_none(workspace: Workspace, other_workspace: Workspace) -> None:
    diagnose(other_workspace, 3)
    assert sum_misses_by_cause(workspace, Span(date(2026, 11, 1), date(2026, 11, 30), ZoneInfo("UTC"))) == []


@pytest.mark.only_on("sqlite")
def test_nothing_is_sorted(workspace: Workspace) -> None:
    diagnose(workspace, 20)
    statements: list[tuple[str, object]] = []

    def note(execute: object, sql: str, values: object, many: bool, context: object) -> object:
        statements.append((sql, values))
        return execute(sql, values, many, context)  # type: ignore[operator]

    with connection.execute_wrapper(note):
        sum_misses_by_cause(workspace, Span(date(2026, 11, 1), date(2026, 11, 30), ZoneInfo("UTC")))

    assert len(statements) == 2
    with connection.cursor() as cursor:
        for sql, values in statements:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            assert not [row for row in cursor.fetchall() if "TEMP B-TREE" in str(row[-1])]
