"""`python -m tests.bench.ledger`: a report over a million records, and recording a thousand by one request."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tests.bench.throwaway import show, throwaway_hub

RECORDS = 1_000_000
DAYS = 90
START = datetime(2026, 8, 25, tzinfo=UTC)
MODELS = [f"claude-bench-{number}" for number in range(12)]
PROJECTS = [f"/home/ana/projects/project-{number}" for number in range(40)]
ROWS_PER_WRITE = 50_000


def make_rows(workspace_id: int, count: int, start: datetime = START) -> Iterator[dict[str, Any]]:
    """Records spread over the days from `start`, priced by an invented price; every column as the ledger fills it."""
    dice = random.Random(7)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        at = start + step * number
        read, write = dice.randrange(200_000), dice.randrange(4_000)
        cost = read * 200_000 + write * 8_000_000
        yield {
            "workspace_id": workspace_id,
            "occurred_at": at,
            "state": 0,
            "part": 0,
            "model": MODELS[dice.randrange(len(MODELS))],
            "project": PROJECTS[dice.randrange(len(PROJECTS))],
            "agent": ("main", "Explore", "reviewer")[number % 3],
            "user": ("ana", "ben", "", "chen")[number % 4],
            "session": f"session-{number // 200}",
            "input_tokens": dice.randrange(50),
            "cache_write_5m_tokens": 0,
            "cache_write_1h_tokens": write,
            "cache_read_tokens": read,
            "output_tokens": dice.randrange(3_000),
            "cost_pico": cost,
            "nocache_pico": cost * 4,
            "message_id": f"msg_{workspace_id}_{number:026d}",
            "request_id": f"req_{number:020d}",
            "chain": f"session-{number // 200}",
            "kind": "message",
            "source": "transcript",
            "convention": "anthropic",
            "region": "",
            "service_tier": "standard",
            "speed": "standard",
            "inference_geo": "",
            "sidechain": False,
            "web_search_requests": 0,
            "web_fetch_requests": 0,
            "thinking_tokens": None,
            "started_at": at,
            "first_byte_at": None,
            "ended_at": at,
            "price_book_version": "pb_0000000000000000",
            "flags": [],
            "credit": "2026-08-25T00:00:00.000000|/home/ana/.claude/projects/-home-ana-projects-project/session.jsonl",
            "stated": [3, 4, 5, 6, 0, 6, None, None, None],
            "diagnostics": None,
            "sightings": None,
            "created_at": at,
            "updated_at": at,
        }


def fill(workspace: Any, count: int, start: datetime = START) -> None:
    """Record `count` responses over DAYS days from `start`, with their roll-ups."""
    from django.db import transaction

    from memoryhub.prompt_cache.models import UsageRecord
    from memoryhub.prompt_cache.services.rollups import rebuild_rollups
    from memoryhub.prompt_cache.services.rows import upsert

    rows = make_rows(workspace.pk, count, start)
    with transaction.atomic():
        while some := [row for _, row in zip(range(ROWS_PER_WRITE), rows, strict=False)]:
            upsert(UsageRecord, some, unique=("workspace_id", "message_id", "part"))
    rebuild_rollups(workspace=workspace)


def seconds(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The best time of a call, and what it returned; the best, because a busy machine only ever adds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        result = run()
        taken.append(time.perf_counter() - start)
    return min(taken), result


def brute_force(workspace: Any, zone: str) -> dict[tuple[Any, str], int]:
    from memoryhub.prompt_cache.models import UsageRecord

    tz, sums = ZoneInfo(zone), {}
    rows = UsageRecord.objects.of(workspace).values_list("occurred_at", "project", "cost_pico")
    for at, project, cost in rows.iterator(chunk_size=20_000):
        key = (at.astimezone(tz).date(), project)
        sums[key] = sums.get(key, 0) + cost
    return sums


def report_figures(workspace: Any, count: int) -> None:
    from memoryhub.prompt_cache.queries import build_report, summarize_costs

    first, last = START.date(), (START + timedelta(days=DAYS)).date()
    groups = ("day", "project")
    own, _ = seconds(lambda: build_report(workspace, first=first, last=last, group_by=groups), 5)
    show("report_own_zone", own * 1000, "ms", "<= 150", records=count)
    other, report = seconds(
        lambda: build_report(workspace, first=first, last=last, time_zone="Asia/Kolkata", group_by=groups), 3
    )
    computed = {(row.keys["day"], row.keys["project"]): row.sums.cost_pico for row in report.rows}
    show(
        "report_other_zone", other, "s", "<= 2", records=count, exact=computed == brute_force(workspace, "Asia/Kolkata")
    )
    page, _ = seconds(lambda: summarize_costs(workspace, first=last - timedelta(days=29), last=last), 3)
    show("report_page_30_days", page * 1000, "ms", "<= 250", records=count)


def ingest_figure(workspace: Any) -> None:
    from django.test import Client

    from memoryhub.workspaces.services import create_api_key

    token = create_api_key(workspace=workspace, name="bench")[1]
    client = Client()
    taken = []
    for batch in range(5):
        reports = [report_of(f"new_{batch}_{number}", number) for number in range(1_000)]
        body = json.dumps(reports)
        start = time.perf_counter()
        response = client.post(
            "/api/v1/prompt-cache/usage",
            body,
            "application/json",
            headers={"Authorization": f"Bearer {token}", "Host": "localhost"},
        )
        taken.append(time.perf_counter() - start)
        if response.status_code != 201:
            sys.exit(response.content.decode()[:500])
    show("ingest_1000_by_one_post", min(taken) * 1000, "ms", "<= 400")


def report_of(message_id: str, number: int) -> dict[str, Any]:
    return {
        "message_id": message_id,
        "request_id": f"req_{message_id}",
        "model": "claude-opus-5-5",
        "started_at": (START + timedelta(minutes=number)).isoformat(),
        "session": f"bench-{number % 20}",
        "agent": "main",
        "project": PROJECTS[number % 40],
        "user": "ana",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 500 + number,
            "cache_creation_input_tokens": 1_000,
            "cache_read_input_tokens": 40_000,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1_000},
            "service_tier": "standard",
        },
    }


def main() -> None:
    count = int(os.environ.get("BENCH_RECORDS", RECORDS))
    with throwaway_hub() as workspace:
        fill(workspace, count)
        report_figures(workspace, count)
        ingest_figure(workspace)


if __name__ == "__main__":
    main()
