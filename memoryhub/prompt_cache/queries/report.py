"""The cost report: rows by group, totals, what has no price, and how it compares with the days before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from memoryhub.prompt_cache.queries.prices import price_book_version
from memoryhub.prompt_cache.queries.sums import (
    Only,
    Read,
    Span,
    Sums,
    UnpricedModel,
    check_groups,
    count_excluded,
    resolve_span,
    sum_unpriced,
    sum_usage,
    total,
)
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.services import check_time_zone

MOST_DAYS = 120


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The sums of one group; `keys` holds only what the report is grouped by (a day as a date)."""

    keys: dict[str, Any]
    sums: Sums


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the API's report, its CSV and the page's table show."""

    rows: list[ReportRow]
    totals: Sums
    unpriced: list[UnpricedModel]
    excluded_count: int
    time_zone: str
    price_book_version: str
    group_by: tuple[str, ...]


def build_report(
    workspace: Workspace,
    *,
    first: date | None = None,
    last: date | None = None,
    time_zone: str = "",
    group_by: Sequence[str] = ("day",),
    only: Only | None = None,
) -> Report:
    """The report over the days from `first` to `last` (both inclusive) of a zone; the workspace's own by default.

    `only` narrows it to one project, model, agent, user or session.
    """
    zone = _zone(workspace, time_zone)
    groups = tuple(dict.fromkeys(group_by))
    span = resolve_span(workspace, first, last, zone)
    check_groups(groups)
    found = sum_usage(workspace, span, groups, only) if span else {}
    rows = [ReportRow(dict(zip(groups, key, strict=True)), sums) for key, sums in found.items()]
    return Report(
        rows=sorted(rows, key=_row_order),
        totals=total(found),
        unpriced=sum_unpriced(workspace, span, only) if span else [],
        excluded_count=count_excluded(workspace, span, only) if span else 0,
        time_zone=zone.key,
        price_book_version=price_book_version(workspace),
        group_by=groups,
    )


def _zone(workspace: Workspace, name: str) -> ZoneInfo:
    name = name or workspace.time_zone
    check_time_zone(name)
    return ZoneInfo(name)


def _row_order(row: ReportRow) -> tuple[Any, ...]:
    """By day, then the dearest first, then by name, so that equal ledgers give equal reports."""
    return row.keys.get("day", date.min), -row.sums.cost_pico, [str(value) for value in row.keys.values()]


@dataclass(frozen=True, slots=True)
class DayCosts:
    """One day of the report page's charts, or a week by its first day. `cumulative_net_pico` adds up the net saving from
    the range's first day to the end of this one.
    """

    day: date
    sums: Sums
    cumulative_net_pico: int


@dataclass(frozen=True, slots=True)
class CostSummary:
    """The report page: a series without gaps, totals against the period before, and the largest groups."""

    first: date
    last: date
    time_zone: str
    days: list[DayCosts]
    totals: Sums
    previous: Sums
    by_model: list[tuple[str, Sums]]
    by_project: list[tuple[str, Sums]]
    by_agent: list[tuple[str, Sums]]
    by_user: list[tuple[str, Sums]]
    by_session: list[tuple[str, Sums]]
    unpriced: list[UnpricedModel] = field(default_factory=list)
    excluded_count: int = 0
    price_book_version: str = ""
    by_week: bool = False  # `days` holds weeks, which begin on Monday and on the range's first day

    def readable(self) -> CostSummary:
        """The same with weeks in place of days where these are more than a chart or a table can show."""
        return self if len(self.days) <= MOST_DAYS else replace(self, days=_weeks(self.days), by_week=True)


def _weeks(days: Sequence[DayCosts]) -> list[DayCosts]:
    weeks = []
    for _, points in groupby(days, key=lambda point: point.day.isocalendar()[:2]):
        week, sums = list(points), Sums()
        for point in week:
            sums.add(point.sums)
        weeks.append(DayCosts(week[0].day, sums, week[-1].cumulative_net_pico))
    return weeks


def summarize_costs(
    workspace: Workspace,
    *,
    first: date,
    last: date,
    time_zone: str = "",
    sessions: bool = True,
    limit: int = 12,
    only: Only | None = None,
) -> CostSummary:
    """Figures for the report page from `first` to `last`, inclusive, in a zone (the workspace's own is fastest).

    Every day of the range is in `days`, also those without usage. `previous` sums as many days directly before. The
    groups are the dearest `limit` ones; an empty name means "not said". `sessions=False` saves reading the records, which
    `only` (one project, model, agent, user or session) always does.
    """
    zone = _zone(workspace, time_zone)
    span = Span(first, last, zone)
    by_day = sum_usage(workspace, span, ["day"], only)
    names = ("model", "project", "agent", "user", *(["session"] if sessions else []))
    read: Read = {}
    groups = {name: _largest(workspace, span, name, limit, only, read) for name in names}
    return CostSummary(
        first=first,
        last=last,
        time_zone=zone.key,
        days=_series(span, by_day),
        totals=total(by_day),
        previous=total(sum_usage(workspace, span.previous(), ["day"], only)),
        by_model=groups["model"],
        by_project=groups["project"],
        by_agent=groups["agent"],
        by_user=groups["user"],
        by_session=groups.get("session", []),
        unpriced=sum_unpriced(workspace, span, only),
        excluded_count=count_excluded(workspace, span, only),
        price_book_version=price_book_version(workspace),
    )


def _largest(
    workspace: Workspace, span: Span, name: str, limit: int, only: Only | None, read: Read
) -> list[tuple[str, Sums]]:
    found = sum_usage(workspace, span, [name], only, read=read)
    ranked = sorted(found.items(), key=lambda item: (-item[1].cost_pico, item[0]))
    return [(key[0], sums) for key, sums in ranked[:limit]]


def _series(span: Span, by_day: dict[tuple[Any, ...], Sums]) -> list[DayCosts]:
    series, running = [], 0
    for day, _, _ in span.days():
        sums = by_day.get((day,), Sums())
        running += sums.net_saving_pico
        series.append(DayCosts(day, sums, running))
    return series


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The overview's figures: a period and the one before it."""

    current: Sums
    previous: Sums


def overview_costs(workspace: Workspace, *, today: date, days: int = 7, time_zone: str = "") -> PeriodFigures:
    """Sums of the last `days` days, today included, and of as many before. Pass days=1 for today against yesterday."""
    zone = _zone(workspace, time_zone)
    span = Span(date.fromordinal(today.toordinal() - days + 1), today, zone)
    return PeriodFigures(
        total(sum_usage(workspace, span, ["day"])), total(sum_usage(workspace, span.previous(), ["day"]))
    )
