"""Unread writes and first bytes over the ledger."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.queries import FirstByteTimes, UnreadWrites, first_byte_times, sum_unread_writes, waste
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.models import Workspace

TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)
DAY = {"first": date(2026, 11, 10), "last": date(2026, 11, 10), "zone": ZoneInfo("UTC")}


def report(number: int, read: int, write: int, **changes: Any) -> UsageReport:
    values = {
        "message_id": f"m{number}",
        "model": "claude-opus-5-5",
        "session": "s1",
        "started_at": TEN + timedelta(minutes=number),
        "usage": {"input_tokens": 1, "cache_read_input_tokens": read, "cache_creation_input_tokens": write},
    }
    return UsageReport(**{**values, **changes})


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

    unread = sum_unread_writes(workspace, **DAY, now=TEN + timedelta(days=1))

    assert unread == UnreadWrites(requests=2, tokens=1_002_000, premium_pico=1_002_000 * 1_000_000)


def test_the_price_of_the_request_decides_the_premium(workspace: Workspace) -> None:
    batch = {"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "service_tier": "batch"}
    record_reports(workspace=workspace, reports=[report(0, 0, 0, usage=batch)])

    unread = sum_unread_writes(workspace, **DAY, now=TEN + timedelta(days=1))

    assert unread is not None
    assert unread.premium_pico == 10**12 // 2


def test_first_bytes_of_hits_and_misses(workspace: Workspace) -> None:
    reports = []
    for number, (read, wait) in enumerate([(0, 4), (0, 6), (900, 1), (900, 1), (900, 3)]):
        at = TEN + timedelta(minutes=number)
        reports.append(report(number, read, 0, started_at=at, first_byte_at=at + timedelta(seconds=wait)))
    record_reports(workspace=workspace, reports=[*reports, report(9, 900, 0)])

    assert first_byte_times(workspace, **DAY) == FirstByteTimes(hit_seconds=1.0, miss_seconds=5.0)
    assert first_byte_times(workspace, **DAY, only={"session": "nobody"}) == FirstByteTimes(None, None)


def test_a_range_with_too_many_requests_says_so(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waste, "MOST_REQUESTS", 1)
    record_reports(workspace=workspace, reports=[report(0, 0, 1), report(1, 0, 1)])

    assert sum_unread_writes(workspace, **DAY, now=TEN) is None
