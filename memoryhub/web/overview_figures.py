"""The overview's figures, layer by layer. Each is a bounded or rolled-up query, so the page does not grow with the tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.translation import gettext as _

from memoryhub.long_term_memory.queries import page_rows
from memoryhub.prompt_cache.queries import Sums, build_report
from memoryhub.session_cache.queries.tool_results import summarize_tools
from memoryhub.web import formats
from memoryhub.web.charts import spark
from memoryhub.web.report import Kpi
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.queries import count_sessions

WEEK_DAYS = 7


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's figures."""

    slug: str
    title: str
    kpis: list[Kpi]
    is_empty: bool


def summarize(workspace: Workspace, now: datetime) -> list[Layer]:
    """Return the three layers, short term first."""
    return [_short_term(workspace, now), _medium_term(workspace, now), _long_term(workspace, now)]


def _short_term(workspace: Workspace, now: datetime) -> Layer:
    today = now.astimezone(ZoneInfo(workspace.time_zone)).date()
    first = today - timedelta(days=2 * WEEK_DAYS - 1)
    report = build_report(workspace, first=first, last=today, group_by=["day"])
    by_day = {row.keys["day"]: row.sums for row in report.rows}
    series = [by_day.get(first + timedelta(days=index), Sums()) for index in range(2 * WEEK_DAYS)]
    week, before, this_day = _added(series[WEEK_DAYS:]), _added(series[:WEEK_DAYS]), series[-1]
    href = f"{reverse('report')}?range=7d"
    kpis = [
        _cost(week, before, this_day, series[WEEK_DAYS:], href),
        Kpi(
            _("Net saving, 7 days"),
            formats.usd(week.net_saving_usd),
            _("%(before)s in the 7 days before") % {"before": formats.usd(before.net_saving_usd)},
            "up" if week.net_saving_pico > 0 else "down" if week.net_saving_pico < 0 else "",
            href,
            spark([sums.net_saving_usd for sums in series[WEEK_DAYS:]], "teal"),
        ),
        _hit_rate(week, before, series[WEEK_DAYS:], href),
    ]
    return Layer("short-term", _("Short term"), kpis, week.is_empty and before.is_empty and not report.unpriced)


def _added(days: Sequence[Sums]) -> Sums:
    total = Sums()
    for day in days:
        total.add(day)
    return total


def _cost(week: Sums, before: Sums, today: Sums, series: Sequence[Sums], href: str) -> Kpi:
    text, direction = formats.change(week.cost_pico, before.cost_pico)
    spent = _("%(cost)s today") % {"cost": formats.usd(today.cost_usd)}
    note = " · ".join(part for part in (text, spent) if part)
    tone = {"more": "down", "less": "up"}.get(direction, "")
    return Kpi(
        _("Cost, 7 days"), formats.usd(week.cost_usd), note, tone, href, spark([sums.cost_usd for sums in series])
    )


def _hit_rate(week: Sums, before: Sums, series: Sequence[Sums], href: str) -> Kpi:
    note, tone = "", ""
    if week.hit_rate is not None and before.hit_rate is not None:
        points = (week.hit_rate - before.hit_rate) * 100
        tone = "up" if points > 0.05 else "down" if points < -0.05 else ""
        arrow = {"up": "▲", "down": "▼"}.get(tone, "")
        note = _("%(arrow)s %(n)s points") % {"arrow": arrow, "n": f"{abs(points):.1f}"} if tone else _("unchanged")
    return Kpi(
        _("Hit rate (tokens), 7 days"),
        formats.percent(week.hit_rate),
        note,
        tone,
        href,
        spark([s.hit_rate for s in series]),
    )


def _medium_term(workspace: Workspace, now: datetime) -> Layer:
    tools = summarize_tools(workspace)
    hits, misses = sum(tool["hits"] for tool in tools), sum(tool["misses"] for tool in tools)
    saved = sum(tool["saved_ms"] for tool in tools) / 1000
    active = count_sessions(workspace, active_since=now - timedelta(days=WEEK_DAYS))
    total = count_sessions(workspace)
    rate = _("%(rate)s of look-ups") % {"rate": formats.percent(hits / (hits + misses))} if hits + misses else ""
    kpis = [
        Kpi(_("Tool results from the cache"), formats.count(hits), rate, href=reverse("tool_cache")),
        Kpi(_("Tool time saved"), formats.duration(saved) if hits else formats.NOTHING, href=reverse("tool_cache")),
        Kpi(
            _("Sessions, 7 days"),
            formats.capped_count(active),
            _note_of_all(total, active),
            href=reverse("sessions"),
        ),
    ]
    return Layer("medium-term", _("Medium term"), kpis, not tools and not total)


def _note_of_all(total: int, shown: int) -> str:
    return _("%(n)s in all") % {"n": formats.capped_count(total)} if total != shown else ""


def _long_term(workspace: Workspace, now: datetime) -> Layer:
    figures = page_rows.summarize_list(workspace, now)
    new = page_rows.count_new(workspace, now - timedelta(days=WEEK_DAYS))
    url = reverse("memories")
    kpis = [
        Kpi(
            _("Memories"),
            formats.capped_count(figures.alive),
            _("%(n)s new in 7 days") % {"n": formats.capped_count(new)},
            href=url,
        ),
        Kpi(_("Fading within a week"), formats.capped_count(figures.fading_soon), href=f"{url}?view=fading"),
        Kpi(
            _("Wait for review"),
            formats.capped_count(figures.in_review),
            _("nothing to decide") if not figures.in_review else "",
            href=reverse("review"),
        ),
    ]
    return Layer("long-term", _("Long term"), kpis, not figures.alive and not page_rows.has_any(workspace))
