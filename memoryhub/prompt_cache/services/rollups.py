"""Daily sums in the workspace's own time zone, and sums by quarter of an hour for all others, kept in the ledger's transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import CharField, F, Func

from memoryhub.common import errors
from memoryhub.prompt_cache.domain.entries import EXCLUDED, PRICED
from memoryhub.prompt_cache.models import DailyUsage, Dimension, LedgerState, UsageRecord
from memoryhub.prompt_cache.models.ledger import HIGHEST_STORED_PICO
from memoryhub.prompt_cache.queries.sums import SUMMED, add_amounts, aggregates, days_with, quarter_of, resolve_span
from memoryhub.prompt_cache.services.rows import upsert
from memoryhub.workspaces.models import Workspace

logger = logging.getLogger(__name__)

# In the place of a zone: the sums can't be trusted and reports compute from the records until they are rebuilt.
STALE = ""
_UNIQUE = ("workspace_id", "dimension", "day", "value")
_GROUPED = ("model", "project", "agent", "user", "session")


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


Cell = tuple[int, date, str, str, str, str, str]  # state, day, model, project, agent, user, session


def _zeros() -> list[int]:
    return [0] * len(SUMMED)


class _MinuteOf(Func):
    """A moment's minute in UTC as text, `2026-11-30 14:45`: no database has to know time zones."""

    output_field = CharField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return self.as_sql(compiler, connection, template="substr(%(expressions)s, 1, 16)", **more)

    def as_postgresql(self, compiler: Any, connection: Any, **more: Any) -> Any:
        template = "to_char(%(expressions)s AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')"
        return self.as_sql(compiler, connection, template=template, **more)


@dataclass
class RollUpChanges:
    """What a batch of ledger changes does to the daily sums; written once, at the end."""

    workspace: Workspace
    zone: ZoneInfo
    cells: dict[Cell, list[int]] = field(default_factory=dict)
    quarters: dict[tuple[date, str], list[int]] = field(default_factory=dict)  # of priced rows

    @classmethod
    def of(cls, workspace: Workspace, state: LedgerState) -> RollUpChanges:
        """For a locked ledger, in the zone that its sums are kept in."""
        return cls(workspace, ZoneInfo(state.time_zone or "UTC"))

    def add(self, row: Any, sign: int = 1) -> None:
        """Count a row in (or with -1 out). A row is any mapping with the ledger's columns."""
        if row["state"] == EXCLUDED:
            return
        day = row["occurred_at"].astimezone(self.zone).date()
        key = (row["state"], day, row["model"], row["project"], row["agent"], row["user"], row["session"])
        amounts = [row[name] * sign for name in SUMMED[1:]]
        amounts.insert(0, sign * (row["part"] == 0))
        add_amounts(self.cells, key, amounts)
        if row["state"] == PRICED:
            add_amounts(self.quarters, quarter_of(row["occurred_at"]), amounts)

    def sums(self) -> dict[tuple[str, date, str], list[int]]:
        """The changes by dimension, day and value."""
        found: dict[tuple[str, date, str], list[int]] = {}
        for cell, amounts in self.cells.items():
            for key in _keys(cell):
                add_amounts(found, key, amounts)
        for (day, beginning), amounts in self.quarters.items():
            add_amounts(found, (Dimension.QUARTER.value, day, beginning), amounts)
        return found

    def write(self) -> None:
        changed: list[dict[str, Any]] = [
            {
                "workspace_id": self.workspace.pk,
                "dimension": dimension,
                "day": day,
                "value": value,
                **dict(zip(SUMMED, sums, strict=True)),
            }
            for (dimension, day, value), sums in sorted(self.sums().items())
            if any(sums)
        ]
        if any(max(row["cost_pico"], row["nocache_pico"]) > HIGHEST_STORED_PICO for row in changed):
            raise LedgerFullError("One day of this workspace would cost more than 9 million USD.")
        try:
            _write(self.workspace, changed)
        except IntegrityError as error:
            if "daily_usage_money_is_exact" in str(error):
                raise LedgerFullError("One day of this workspace would cost more than 9 million USD.") from error
            raise


def _keys(cell: Cell) -> Iterator[tuple[str, date, str]]:
    state, day, model, project, agent, user, session = cell
    if state != PRICED:
        yield Dimension.UNPRICED.value, day, model
        return
    yield Dimension.ALL.value, day, ""
    yield Dimension.MODEL.value, day, model
    yield Dimension.PROJECT.value, day, project
    yield Dimension.AGENT.value, day, agent
    yield Dimension.USER.value, day, user
    yield Dimension.SESSION.value, day, session


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
        changes = _changes_of_records(workspace, ZoneInfo(zone_name))
        DailyUsage.objects.filter(workspace=workspace).delete()
        changes.write()
        state.time_zone = zone_name
        state.save(update_fields=["time_zone"])
    return len(changes.sums())


def check_rollups(*, workspace: Workspace) -> list[str]:
    """Compare the stored sums with sums computed from the records; returns one sentence per difference.

    Sums that wait to be rebuilt are not held against anything: no report reads them.
    """
    with transaction.atomic():
        state = lock_ledger(workspace)
        if state.time_zone == STALE:
            return []
        truth = _changes_of_records(workspace, ZoneInfo(state.time_zone)).sums()
        stored = {
            (row.dimension, row.day, row.value): [getattr(row, name) for name in SUMMED]
            for row in DailyUsage.objects.filter(workspace=workspace).iterator()
        }
    differences = []
    for key in sorted({*truth, *stored}):
        right, kept = truth.get(key, _zeros()), stored.get(key, _zeros())
        if right != kept:
            dimension, day, value = key
            differences.append(f"{day} {dimension} {value or '(none)'}: stored {kept}, computed {right}")
    return differences


def _changes_of_records(workspace: Workspace, zone: ZoneInfo) -> RollUpChanges:
    """The sums of all records, added up by the database one local day at a time."""
    changes = RollUpChanges(workspace, zone)
    span = resolve_span(workspace, None, None, zone)
    if span is None:
        return changes
    records = UsageRecord.objects.of(workspace).exclude(state=EXCLUDED)
    sums = aggregates()
    for day, start, end in days_with(records, span):
        of_day = records.between(start, end)
        for row in of_day.values_list("state", *_GROUPED).annotate(**sums):
            state, *names = row[: len(_GROUPED) + 1]
            changes.cells[state, day, *names] = list(row[len(_GROUPED) + 1 :])
        minutes = of_day.filter(state=PRICED).annotate(minute=_MinuteOf("occurred_at")).order_by()
        for minute, *amounts in minutes.values_list("minute").annotate(**sums):
            moment = datetime.fromisoformat(minute).replace(tzinfo=UTC)
            add_amounts(changes.quarters, quarter_of(moment), amounts)
    return changes
