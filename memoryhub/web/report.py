"""The cost report: one screen that a team can discuss. The whole state is in the address."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from memoryhub.prompt_cache.queries import CostSummary, Span, Sums, summarize_costs
from memoryhub.prompt_cache.queries.sums import sum_usage
from memoryhub.web import formats, report_changes, report_findings
from memoryhub.web.access import MemberRequest, known_zone, member
from memoryhub.web.charts import costs, spark
from memoryhub.web.htmx import wants_part
from memoryhub.web.paging import url_with
from memoryhub.web.ranges import DEFAULT_PRESET, PRESETS, DayRange, read_range
from memoryhub.web.report_changes import GroupsBefore
from memoryhub.web.templatetags.hub import last_segment
from memoryhub.workspaces.models import Workspace

GROUPS: dict[str, Any] = {
    "model": gettext_lazy("Model"),
    "project": gettext_lazy("Project"),
    "agent": gettext_lazy("Agent"),
    "user": gettext_lazy("User"),
    "session": gettext_lazy("Session"),
}
GROUPS_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Kpi:
    """A figure as partials/_kpi.html shows it."""

    label: str
    value: str
    note: str = ""
    tone: str = ""
    href: str = ""
    spark: Any = None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of the breakdown."""

    name: str
    full_name: str
    href: str
    share: float
    share_text: str
    sums: Sums
    change: str
    change_tone: str
    requests_url: str


@require_GET
@member("viewer")
def report(request: MemberRequest) -> HttpResponse:
    """Show the report, or only its breakdown when that alone is asked for."""
    workspace = request.principal.workspace
    days = read_range(request.GET, default_zone=workspace.time_zone)
    group = request.GET.get("by", "") if request.GET.get("by", "") in GROUPS else "model"
    summary = summarize_costs(
        workspace,
        first=days.first,
        last=days.last,
        time_zone=days.zone,
        sessions=group == "session",
        limit=GROUPS_SHOWN,
    ).readable()
    compare = request.GET.get("compare") != "none"
    before = report_changes.groups_before(workspace, days, group, compare=compare and not summary.previous.is_empty)
    context = {"days": days, **_breakdown(request, summary, group, before)}
    if wants_part(request) and request.htmx.target == "breakdown":
        return render(request, "prompt_cache/report.html#breakdown", context)
    findings = report_findings.find(workspace, days)
    context |= {
        "summary": summary,
        "change": _change(workspace, days, summary, before, group) if compare else None,
        "kpis": _figures(summary, compare) + [Kpi(*figure) for figure in findings.figures],
        "charts": [costs.saving_chart(summary), costs.hit_rate_chart(summary), costs.tokens_chart(summary)]
        + ([costs.misses_chart(findings.misses)] if findings.misses else []),
        "main_chart": costs.cost_chart(summary),
        "advice": findings.advice,
        "controls": _controls(request, days, summary, compare),
    }
    return render(request, "prompt_cache/report.html", context)


def _figures(summary: CostSummary, compare: bool) -> list[Kpi]:
    now, before = summary.totals, summary.previous
    series = [point.sums for point in summary.days]
    more, direction = formats.change(now.cost_pico, before.cost_pico) if compare else ("", "")
    difference = formats.usd(abs(now.cost_usd - before.cost_usd)) if direction in ("more", "less") else ""
    return [
        Kpi(
            _("Cost"),
            formats.usd(now.cost_usd),
            " · ".join(part for part in (more, difference) if part)
            or _("%(n)s requests") % {"n": formats.count(now.requests)},
            {"more": "down", "less": "up"}.get(direction, ""),
            spark=spark([sums.cost_usd for sums in series]),
        ),
        Kpi(
            _("Without cache"),
            formats.usd(now.nocache_usd),
            _("same requests"),
            spark=spark([s.nocache_usd for s in series], "grey"),
        ),
        Kpi(
            _("Net saving"),
            formats.usd(now.net_saving_usd),
            _("%(share)s of the uncached cost") % {"share": costs.saving_share(now)} if now.nocache_pico else "",
            "up" if now.net_saving_pico > 0 else "down" if now.net_saving_pico < 0 else "",
            spark=spark([point.cumulative_net_pico for point in summary.days], "teal"),
        ),
        _hit_rate(now, before, series, compare),
    ]


def _hit_rate(now: Sums, before: Sums, series: list[Sums], compare: bool) -> Kpi:
    note, tone = "", ""
    if compare and now.hit_rate is not None and before.hit_rate is not None:
        points = (now.hit_rate - before.hit_rate) * 100
        if abs(points) >= 0.05:
            note = _("%(arrow)s %(n)s points") % {"arrow": "▲" if points > 0 else "▼", "n": f"{abs(points):.1f}"}
            tone = "up" if points > 0 else "down"
        else:
            note = _("unchanged")
    return Kpi(
        _("Hit rate (tokens)"),
        formats.percent(now.hit_rate),
        note,
        tone,
        spark=spark([sums.hit_rate for sums in series]),
    )


def _change(
    workspace: Workspace, days: DayRange, summary: CostSummary, before: GroupsBefore, group: str
) -> report_changes.Change:
    """What changed and why; groups are compared over all of them, not only the dearest that are shown."""
    if before.sums is None:
        return report_changes.explain(summary, {}, before, str)
    span = Span(days.first, days.last, ZoneInfo(days.zone))
    now = {name: sums for (name,), sums in sum_usage(workspace, span, [group]).items()}
    return report_changes.explain(summary, now, before, lambda name: _group_name(group, name))


def _group_name(group: str, name: str) -> str:
    return (last_segment(name) if group == "project" else name) or _("not said")


def _breakdown(request: MemberRequest, summary: CostSummary, group: str, before: GroupsBefore) -> dict[str, Any]:
    found: list[tuple[str, Sums]] = getattr(summary, f"by_{group}")
    total = summary.totals.cost_pico or 1
    rows = [
        GroupRow(
            name=_group_name(group, name),
            full_name=name,
            href=_drill_down(group, name),
            share=max(0.0, min(1.0, sums.cost_pico / total)),
            share_text=formats.percent(Decimal(sums.cost_pico) / total),
            sums=sums,
            change=change,
            change_tone=tone,
            requests_url=_requests_url(summary, group, name),
        )
        for name, sums in found
        for change, tone in [before.difference(name, sums)]
    ]
    tabs = [
        (url_with(request, by=None if key == "model" else key), label, key == group) for key, label in GROUPS.items()
    ]
    return {
        "groups": rows,
        "compares": before.sums is not None,
        "group_tabs": tabs,
        "group_label": GROUPS[group],
        "groups_shown": GROUPS_SHOWN,
        "csv_group_url": _csv_url(summary, group),
    }


def _csv_url(summary: CostSummary, group: str) -> str:
    query = {
        "from": summary.first.isoformat(),
        "to": summary.last.isoformat(),
        "tz": summary.time_zone,
        "format": "csv",
    }
    return f"/api/v1/prompt-cache/report?{urlencode({**query, 'group_by': group})}"


def _requests_url(summary: CostSummary, group: str, name: str) -> str:
    """The address of the single requests behind a group; none where it has no name."""
    if not name:
        return ""
    days = {"from": summary.first.isoformat(), "to": summary.last.isoformat(), "tz": summary.time_zone}
    return f"{reverse('requests')}?{urlencode({group: name, **days})}"


def _drill_down(group: str, name: str) -> str:
    if not name:
        return ""
    if group == "session":
        return f"/sessions/{name}"
    if group == "model":
        return f"{reverse('prices')}?{urlencode({'model': name})}"
    return f"/sessions?{urlencode({group: name})}"


def _controls(request: MemberRequest, days: DayRange, summary: CostSummary, compare: bool) -> dict[str, Any]:
    """The links and fields that change the address."""
    presets = [
        (
            url_with(request, **{"range": None if key == DEFAULT_PRESET else key, "from": None, "to": None}),
            label,
            key == days.preset,
        )
        for key, label in PRESETS.items()
    ]
    zones = list(dict.fromkeys([request.principal.workspace.time_zone, request.viewer.zone, days.zone, "UTC"]))
    return {
        "presets": presets,
        "compare": compare,
        "compare_url": url_with(request, compare="none" if compare else None),
        "zones": [(zone, zone == days.zone) for zone in zones if known_zone(zone)],
        "csv_url": _csv_url(summary, "day"),
        "kept": [(name, value) for name, value in request.GET.items() if name in ("by", "compare")],
    }
