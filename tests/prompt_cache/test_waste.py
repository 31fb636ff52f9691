"""Unread writes and first bytes over the ledger: looked at request by request, or summed up by day."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.models import DailyWaste
from memoryhub.prompt_cache.queries import Span, Waste, sum_waste, waste
from memoryhub.prompt_cache.services.findings import count_waste, find_out
from memoryhub.prompt_cache.services.rollups import rebuild_rollups
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace

UTC_ZONE = ZoneInfo("UTC")
TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)
LATER = TEN + timedelta(days=1)
DAY = Span(date(2026, 11, 10), date(2026, 11, 10), UTC_ZONE)


def report(number: int, read: int, write: int, **changes: Any) -> UsageReport:
    values = {
        "message_id": f"m{number}",
        "model": "claude-opus-5-5",
        "session": "s1",
        "started_at": TEN + timedelta(minutes=number),
        "usage": {"input_tokens": 1, "cache_read_input_tokens": read, "cache_creation_input_tokens": write},
    }
    return UsageReport(**{**values, **changes})


def unread(found: Waste) -> tuple[int, int, int]:
    return found.requests, found.tokens, found.premium_pico


def test_only_writes_that_the_chain_never_read_are_counted(workspace: Workspace) -> None:
    record_reports(
        workspace=workspace,
        reports=[
            report(0, 0, 10_000),
            report(1, 10_000, 2_000),
            report(2, 10_000, 1_000_000),
            report(3, 0, 0, session="other"),
            report(4, 0, 500, session=""),
        ],
    )

    found = sum_waste(workspace, DAY, now=LATER)

    assert unread(found) == (2, 1_002_000, 1_002_000 * 1_000_000)
    assert found.complete


def test_the_next_request_counts_though_it_wrote_nothing(workspace: Workspace) -> None:
    record_reports(workspace=workspace, reports=[report(0, 0, 9_000), report(1, 5_000, 0), report(2, 9_000, 0)])

    assert unread(sum_waste(workspace, DAY, now=LATER))[:2] == (1, 4_000)


def test_the_price_of_the_request_decides_the_premium(workspace: Workspace) -> None:
    batch = {"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "service_tier": "batch"}
    record_reports(workspace=workspace, reports=[report(0, 0, 0, usage=batch)])

    assert sum_waste(workspace, DAY, now=LATER).premium_pico == 10**12 // 2


def test_first_bytes_of_hits_and_misses(workspace: Workspace) -> None:
    reports = []
    for number, (read, wait) in enumerate([(0, 4), (0, 6), (900, 1), (900, 1), (900, 3)]):
        at = TEN + timedelta(minutes=number)
        reports.append(report(number, read, 0, started_at=at, first_byte_at=at + timedelta(seconds=wait)))
    record_reports(workspace=workspace, reports=[*reports, report(9, 900, 0)])

    found = sum_waste(workspace, DAY, now=LATER)
    nobody = sum_waste(workspace, DAY, now=LATER, only={"session": "nobody"})

    assert (found.hit_seconds, found.miss_seconds) == (pytest.approx(1, rel=0.025), pytest.approx(5, rel=0.025))
    assert (nobody.hit_seconds, nobody.miss_seconds) == (None, None)


def test_of_too_many_requests_the_newest_are_looked_at_and_that_is_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waste, "LIVE_REQUESTS", 2)
    record_reports(workspace=workspace, reports=[report(number, 0, 10**number) for number in range(4)])

    found = sum_waste(workspace, DAY, now=LATER)

    assert (found.requests, found.tokens, found.complete) == (2, 1_100, False)


def test_a_write_that_is_read_on_the_next_day_is_no_waste(workspace: Workspace) -> None:
    midnight = datetime(2026, 11, 11, tzinfo=UTC)
    record_reports(
        workspace=workspace,
        reports=[
            report(0, 0, 9_000, started_at=midnight - timedelta(minutes=2)),
            report(1, 9_000, 0, started_at=midnight + timedelta(minutes=2)),
        ],
    )

    assert unread(sum_waste(workspace, DAY, now=midnight + timedelta(days=1))) == (0, 0, 0)


# --- Summed up by day ------------------------------------------------------------------------------------------------


def three_days(workspace: Workspace) -> Span:
    """Each day a write that nobody reads, and a wait."""
    reports = []
    for day in range(3):
        at = TEN + timedelta(days=day)
        reports.append(report(day, 0, 10 ** (day + 3), started_at=at, first_byte_at=at + timedelta(seconds=2**day)))
    record_reports(workspace=workspace, reports=reports)
    return Span(TEN.date(), TEN.date() + timedelta(days=2), UTC_ZONE)


def test_summed_up_days_say_the_same_as_their_requests(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    span, now = three_days(workspace), TEN + timedelta(days=2, hours=3)
    live = sum_waste(workspace, span, now=now)

    with clock.frozen(now):
        assert (find_out(workspace=workspace).days, count_waste(workspace=workspace)) == (2, 0)
    monkeypatch.setattr(waste, "LIVE_REQUESTS", 1)

    assert DailyWaste.objects.count() == 2  # the third day is not over
    assert sum_waste(workspace, span, now=now) == live
    assert unread(live) == (3, 111_000, 111_000 * 1_000_000)
    assert live.miss_seconds == pytest.approx(2, rel=0.025)


def test_a_day_that_changed_is_looked_at_again(workspace: Workspace) -> None:
    span, now = three_days(workspace), TEN + timedelta(days=4)
    with clock.frozen(now):
        count_waste(workspace=workspace)
        record_reports(workspace=workspace, reports=[report(7, 0, 5_000, session="s9")])

        stale = sum_waste(workspace, span, now=now)
        again = count_waste(workspace=workspace)

    assert unread(stale)[:2] == (4, 116_000)
    assert again == 1
    assert sum_waste(workspace, span, now=now) == stale


def test_a_day_changes_with_the_next_one_which_may_have_read_it(workspace: Workspace) -> None:
    late = datetime(2026, 11, 10, 23, 59, tzinfo=UTC)
    now = late + timedelta(days=3)
    record_reports(workspace=workspace, reports=[report(1, 0, 9_000, started_at=late)])
    with clock.frozen(now):
        count_waste(workspace=workspace)
        record_reports(workspace=workspace, reports=[report(2, 9_000, 0, started_at=late + timedelta(minutes=3))])

        assert unread(sum_waste(workspace, DAY, now=now)) == (0, 0, 0)
        assert count_waste(workspace=workspace) == 2


def test_a_run_does_a_bounded_share_the_newest_days_first(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memoryhub.prompt_cache.services import findings

    monkeypatch.setattr(findings, "REQUESTS_PER_RUN", 1)
    three_days(workspace)
    with clock.frozen(TEN + timedelta(days=9)):
        assert [count_waste(workspace=workspace) for _ in range(4)] == [1, 1, 1, 0]
    assert [row.day.day for row in DailyWaste.objects.order_by("id")] == [12, 11, 10]


def test_another_zone_and_one_project_are_computed_from_the_requests(workspace: Workspace) -> None:
    span, now = three_days(workspace), TEN + timedelta(days=9)
    with clock.frozen(now):
        count_waste(workspace=workspace)

    shanghai = sum_waste(workspace, Span(span.first, span.last, ZoneInfo("Asia/Shanghai")), now=now)

    assert unread(shanghai)[:2] == (3, 111_000)
    assert unread(sum_waste(workspace, span, now=now, only={"session": "other"})) == (0, 0, 0)


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati"])
def test_days_of_another_zone_are_the_days_inside_them_and_the_hours_around(
    workspace: Workspace, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [TEN + timedelta(minutes=53 * number) for number in range(150)]  # five days and a half
    record_reports(
        workspace=workspace,
        reports=[
            report(n, (n % 3) * 4_000, 1_000 * (n % 5), started_at=at, first_byte_at=at + timedelta(seconds=1 + n % 4))
            for n, at in enumerate(moments)
        ],
    )
    now = TEN + timedelta(days=9)
    span = Span(date(2026, 11, 11), date(2026, 11, 14), ZoneInfo(zone))
    every_request = waste.look_at(workspace, span, now=now)
    with clock.frozen(now):
        count_waste(workspace=workspace)
    monkeypatch.setattr(waste, "LIVE_REQUESTS", 60)

    assert sum_waste(workspace, span, now=now) == every_request
    assert every_request.tokens > 0
    assert sum_waste(workspace, Span(span.first, span.first, span.zone), now=now).tokens > 0


def test_sums_of_days_that_are_gone_go_too(workspace: Workspace) -> None:
    three_days(workspace)
    with clock.frozen(TEN + timedelta(days=9)):
        count_waste(workspace=workspace)
        rebuild_rollups(workspace=workspace, time_zone="Pacific/Kiritimati")
        count_waste(workspace=workspace)

    assert sorted(row.day.day for row in DailyWaste.objects.all()) == [11, 12, 13]
