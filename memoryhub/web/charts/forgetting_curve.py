"""The forgetting curve of one memory as a figure: what its strength was, is, and will be while nobody uses it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from memoryhub.long_term_memory.domain.decay import SECONDS_PER_DAY, Curve, DecayPolicy, MemoryFacts, draw_curve
from memoryhub.web import formats
from memoryhub.web.charts import Chart, day_axis
from memoryhub.web.figure_words import Definition

PAST_DAYS = 120  # how far back the figure goes at most
FUTURE_DAYS = (30, 365)  # how far it looks ahead, at least and at most
POINTS = 60  # of each half of the line
CHART_ID = "forgetting-curve"


@dataclass(frozen=True, slots=True)
class CurveView:
    """What the page shows of the curve, for the saved importance or the one that the slider tries."""

    importance: float
    strength: float
    fades: str
    archives: str
    chart: Chart


def draw(
    *, facts: MemoryFacts, policy: DecayPolicy, created_at: datetime, accesses: Sequence[datetime], now: datetime
) -> CurveView:
    """Draw the curve as it stands at `now`."""
    curve = draw_curve(facts, policy)
    start = max(created_at, now - timedelta(days=PAST_DAYS))
    end = now + timedelta(days=_days_ahead(curve, now))
    past = _history(facts, policy, curve, [start, *(at for at in sorted(accesses) if start < at < now)], now)
    ahead = [(at, curve.strength_at(at)) for at in _moments(now, end)]
    used = [(at, curve.importance) for at in accesses if start <= at <= now]
    strength = curve.strength_at(now)
    flat = curve.daily_loss == 0
    fades, archives = _fate(curve.fades_at, now, flat=flat), _fate(curve.archives_at, now, flat=flat)
    summary = _("Strength is %(strength)s today. It fades: %(fades)s. It is archived: %(archives)s.")
    chart = Chart(
        id=CHART_ID,
        title=_("Forgetting curve"),
        figure={"data": _traces(past, ahead, used, (now, strength)), "layout": _layout(policy, curve, start, end)},
        summary=summary % {"strength": f"{strength:.2f}", "fades": fades, "archives": archives},
        definitions=[_definition(policy, flat=flat)],
        columns=[_("Day"), _("Strength")],
        rows=[
            [formats.day(timezone.localtime(at).date()), f"{curve.strength_at(at):.2f}"]
            for at in _table_days(curve, now, end)
        ],
        size="short",
    )
    return CurveView(facts.importance, strength, fades, archives, chart)


def _days_ahead(curve: Curve, now: datetime) -> float:
    """Far enough to see the memory fade and go, where it does."""
    last = max((at for at in (curve.fades_at, curve.archives_at) if at), default=now)
    wanted = (last - now).total_seconds() / SECONDS_PER_DAY * 1.15
    return min(max(wanted, FUTURE_DAYS[0]), FUTURE_DAYS[1])


def _history(
    facts: MemoryFacts, policy: DecayPolicy, curve: Curve, starts: Sequence[datetime], now: datetime
) -> list[tuple[datetime, float]]:
    """The line up to now: each known access lifts the strength to the importance, from where it falls again."""
    points: list[tuple[datetime, float]] = []
    known = len(starts) - 1
    for index, begin in enumerate(starts):
        last = index == known
        end = now if last else starts[index + 1]
        count = max(0, facts.access_count - (known - index))
        piece = curve if last else draw_curve(replace(facts, idle_since=begin, access_count=count), policy)
        steps = max(4, POINTS // len(starts))
        points += [(at, piece.strength_at(at)) for at in _moments(begin, end, steps)]
    return points


def _moments(start: datetime, end: datetime, steps: int = POINTS) -> list[datetime]:
    span = (end - start) / steps
    return [start + span * step for step in range(steps + 1)]


def _table_days(curve: Curve, now: datetime, end: datetime) -> list[datetime]:
    days = math.ceil((end - now).total_seconds() / SECONDS_PER_DAY)
    step = max(1, days // 8)
    marks = [at for at in (curve.fades_at, curve.archives_at) if at and now < at <= end]
    return sorted({*(now + timedelta(days=day) for day in range(0, days + 1, step)), *marks})


def _local(at: datetime) -> str:
    return timezone.localtime(at).strftime("%Y-%m-%d %H:%M")


def _line(points: Sequence[tuple[datetime, float]]) -> dict[str, Any]:
    return {"x": [_local(at) for at, _strength in points], "y": [round(strength, 4) for _at, strength in points]}


def _traces(
    past: Sequence[tuple[datetime, float]],
    ahead: Sequence[tuple[datetime, float]],
    used: Sequence[tuple[datetime, float]],
    today: tuple[datetime, float],
) -> list[dict[str, Any]]:
    value = "%{y:.2f}<extra></extra>"
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "name": _("Strength until now"), **_line(past), "meta": {"color": "teal"}},
        {
            "type": "scatter",
            "mode": "lines",
            "name": _("If nobody uses it"),
            **_line(ahead),
            "line": {"dash": "dash"},
            "fill": "tozeroy",
            "meta": {"color": "teal"},
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": _("Today"),
            **_line([today]),
            "marker": {"size": 9},
            "meta": {"color": "strong"},
        },
    ]
    for trace in traces:
        trace["hovertemplate"] = value
    if used:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": _("Recalled"),
                **_line(used),
                "marker": {"symbol": "triangle-up", "size": 8},
                "hoverinfo": "x+name",
                "meta": {"color": "accent"},
            }
        )
    return traces


def _layout(policy: DecayPolicy, curve: Curve, start: datetime, end: datetime) -> dict[str, Any]:
    shapes: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for level, text in ((policy.fade_threshold, _("fading below")), (policy.archive_threshold, _("archived below"))):
        shapes.append(
            {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "meta": {"color": "weak"}}
        )
        label = f"{text} {level:g}"
        notes.append(
            {
                "xref": "paper",
                "x": 1,
                "y": level,
                "xanchor": "right",
                "yanchor": "bottom",
                "text": label,
                "showarrow": False,
            }
        )
    for at in (curve.fades_at, curve.archives_at):
        if at and start <= at <= end:
            moment = _local(at)
            shapes.append(
                {
                    "type": "line",
                    "x0": moment,
                    "x1": moment,
                    "yref": "paper",
                    "y0": 0,
                    "y1": 1,
                    "meta": {"color": "warn"},
                }
            )
    return {
        "xaxis": {**day_axis(), "range": [_local(start), _local(end)]},
        "yaxis": {"range": [0, 1.05], "tickformat": ".1f", "nticks": 6},
        "shapes": shapes,
        "annotations": notes,
        "hovermode": "closest",
    }


def _fate(at: datetime | None, now: datetime, *, flat: bool) -> str:
    if at is None:
        return _("never, it is pinned or protected") if flat else _("never")
    day = formats.day(timezone.localtime(at).date())
    return _("since %(day)s") % {"day": day} if at <= now else _("on %(day)s") % {"day": day}


def _definition(policy: DecayPolicy, *, flat: bool) -> Definition:
    name = _("Strength")
    if flat:
        return Definition("strength", name, _("A pinned or protected memory keeps its strength."), "")
    if policy.curve == "half_life":
        rule = _("It halves in %(days)s idle days.") % {"days": f"{policy.half_life_days:g}"}
        formula = f"importance × 2 ^ (−days / {policy.half_life_days:g})"
    else:
        share = formats.percent(policy.factor, 0)
        rule = _("It keeps %(share)s of itself per idle day, and falls slower the more often it was recalled.") % {
            "share": share
        }
        formula = f"importance × {policy.factor:g} ^ (days / recalls)"
    start = _("It starts at the importance and never falls below %(floor)s.") % {"floor": f"{policy.floor:g}"}
    return Definition("strength", name, f"{start} {rule}", formula)
