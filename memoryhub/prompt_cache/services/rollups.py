"""Daily sums in the workspace's own time zone, kept in the ledger's transaction."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import F

from memoryhub.common import errors
from memoryhub.prompt_cache.domain.entries import EXCLUDED, PRICED
from memoryhub.prompt_cache.models import DailyUsage, Dimension, LedgerState, UsageRecord
from memoryhub.prompt_cache.services.rows import upsert
from memoryhub.workspaces.models import Workspace

logger = logging.getLogger(__name__)

SUMMED = (
    "requests",
    "input_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "output_tokens",
    "cost_pico",
    "nocache_pico",
)
# In the place of a zone: the sums can't be trusted and reports compute from the records until they are rebuilt.
STALE = ""
_UNIQUE = ("workspace_id", "dimension", "day", "value")
_READ = ("occurred_at", "state", "part", "model", "project", "agent", "user", *SUMMED[1:])
_ROWS_PER_READ = 5_000


class LedgerFullError(errors.Invalid):
    slug = "ledger-full"
    title = "A day's sum is larger than the ledger can hold"


def lock_ledger(workspace: Workspace) -> LedgerState:
    """Hold the workspace's ledger until the transaction ends, so that read, join and write are one step."""
    state = LedgerState.objects.select_for_update(no_key=True).filter(workspace=workspace).first()
    if state is None:
        LedgerState.objects.get_or_create(workspace=workspace, defaults={"time_zone": workspace.time_zone})
        state = LedgerState.objects.select_for_update(no_key=True).get(workspace=workspace)
    return state


@dataclass
class RollUpChanges:
    """What a batch of ledger changes does to the daily sums; written once, at the end."""

    workspace: Workspace
    zone: ZoneInfo
    sums: dict[tuple[str, date, str], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * len(SUMMED)))

    @classmethod
    def of(cls, workspace: Workspace, state: LedgerState) -> RollUpChanges:
        """For a locked ledger, in the zone that its sums are kept in."""
        return cls(workspace, ZoneInfo(state.time_zone or "UTC"))

    def add(self, row: Any, sign: int = 1) -> None:
        """Count a row in (or with -1 out). A row is any mapping with the ledger's columns."""
        if row["state"] == EXCLUDED:
            return
        day = row["occurred_at"].astimezone(self.zone).date()
        amounts = [sign * (row["part"] == 0), *(sign * row[name] for name in SUMMED[1:])]
        for key in _keys(row, day):
            sums = self.sums[key]
            for index, amount in enumerate(amounts):
                sums[index] += amount

    def write(self) -> None:
        changed = [
            {
                "workspace_id": self.workspace.pk,
                "dimension": dimension,
                "day": day,
                "value": value,
                **dict(zip(SUMMED, sums, strict=True)),
            }
            for (dimension, day, value), sums in sorted(self.sums.items())
            if any(sums)
        ]
        try:
            _write(self.workspace, changed)
        except IntegrityError as error:
            if "daily_usage_money_is_exact" in str(error):
                raise LedgerFullError("One day of this workspace would cost more than 9 million USD.") from error
            raise


def _keys(row: Any, day: date) -> Iterator[tuple[str, date, str]]:
    if row["state"] != PRICED:
        yield Dimension.UNPRICED.value, day, row["model"]
        return
    yield Dimension.ALL.value, day, ""
    yield Dimension.MODEL.value, day, row["model"]
    yield Dimension.PROJECT.value, day, row["project"]
    yield Dimension.AGENT.value, day, row["agent"]
    yield Dimension.USER.value, day, row["user"]


def _write(workspace: Workspace, changed: list[dict[str, Any]]) -> None:
    """Sums that only grow go in by one upsert. A negative insert would break the row's own rule, so those are updated first."""
    growing = [row for row in changed if min(row[name] for name in SUMMED) >= 0]
    upsert(DailyUsage, growing, unique=_UNIQUE, added=True)
    for row in changed:
        if min(row[name] for name in SUMMED) < 0:
            _shift(workspace, row)


def _shift(workspace: Workspace, row: dict[str, Any]) -> None:
    found = DailyUsage.objects.filter(workspace=workspace, **{name: row[name] for name in _UNIQUE[1:]})
    if not found.update(**{name: F(name) + row[name] for name in SUMMED}):
        logger.error(
            "a daily sum is missing: %s %s %s; all are computed anew", row["day"], row["dimension"], row["value"]
        )
        LedgerState.objects.filter(workspace=workspace).update(time_zone=STALE)


def rebuild_rollups(*, workspace: Workspace, time_zone: str | None = None) -> int:
    """Compute all daily sums anew from the records, in the workspace's zone, and return how many there are."""
    zone_name = time_zone or Workspace.objects.values_list("time_zone", flat=True).get(pk=workspace.pk)
    with transaction.atomic():
        state = lock_ledger(workspace)
        sums = _sums_of_records(workspace, ZoneInfo(zone_name))
        DailyUsage.objects.filter(workspace=workspace).delete()
        sums.write()
        state.time_zone = zone_name
        state.save(update_fields=["time_zone"])
    return len(sums.sums)


def check_rollups(*, workspace: Workspace) -> list[str]:
    """Compare the stored sums with sums computed from the records; returns one sentence per difference."""
    with transaction.atomic():
        state = lock_ledger(workspace)
        truth = _sums_of_records(workspace, ZoneInfo(state.time_zone)).sums
        stored = {
            (row.dimension, row.day, row.value): [getattr(row, name) for name in SUMMED]
            for row in DailyUsage.objects.filter(workspace=workspace).iterator()
        }
    differences = []
    for key in sorted({*truth, *stored}):
        right, kept = truth.get(key, [0] * len(SUMMED)), stored.get(key, [0] * len(SUMMED))
        if right != kept:
            dimension, day, value = key
            differences.append(f"{day} {dimension} {value or '(none)'}: stored {kept}, computed {right}")
    return differences


def _sums_of_records(workspace: Workspace, zone: ZoneInfo) -> RollUpChanges:
    sums = RollUpChanges(workspace, zone)
    records = UsageRecord.objects.of(workspace).exclude(state=EXCLUDED).values(*_READ)
    for row in records.order_by("id").iterator(chunk_size=_ROWS_PER_READ):
        sums.add(row)
    return sums
