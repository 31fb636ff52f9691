"""How memories of different importance fade under a policy."""

from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from memoryhub.long_term_memory.domain.decay import DecayPolicy, MemoryFacts, draw_curve
from memoryhub.web import formats
from memoryhub.web.charts import Chart, Trace
from memoryhub.web.figure_words import define

DAYS_SHOWN = 90
_EXAMPLES = ((0.9, 1, "accent", ""), (0.9, 5, "violet", "dash"), (0.5, 1, "teal", "dot"))
_START = datetime(2000, 1, 1, tzinfo=UTC)  # any moment: the picture shows days since the last recall


def policy_chart(policy: DecayPolicy) -> Chart:
    """Strength over idle days of three examples, with the thresholds."""
    days = list(range(0, DAYS_SHOWN + 1, 2))
    traces, table = [], []
    for importance, recalls, color, dash in _EXAMPLES:
        facts = MemoryFacts(
            importance=importance,
            idle_since=_START,
            access_count=recalls,
            pinned=False,
            kind="semantic",
            tags=frozenset(),
            imported_at=None,
        )
        curve = draw_curve(facts, policy)
        strengths = [round(curve.strength_at(_START + timedelta(days=day)), 4) for day in days]
        name = _("importance %(n)s, recalled %(times)s×") % {"n": importance, "times": recalls}
        extra = {"line": {"dash": dash}} if dash else {}
        traces.append(Trace(name, days, strengths, color, extra).line(hover="%{y:.2f}"))
        table.append(
            [
                name,
                *(f"{strengths[day // 2]:.2f}" for day in (0, 30, 60, 90)),
                _fate(curve.fades_at),
                _fate(curve.archives_at),
            ]
        )
    layout = {
        "xaxis": {"title": {"text": _("days since the last recall")}, "nticks": 10},
        "yaxis": {"range": [0, 1.02], "tickformat": ".1f"},
        "shapes": [_line(policy.fade_threshold, "warn"), _line(policy.archive_threshold, "bad")],
        "annotations": [
            _note(policy.fade_threshold, pgettext("a threshold", "fading")),
            _note(policy.archive_threshold, pgettext("a threshold", "archived")),
        ],
    }
    return Chart(
        id="chart-policy",
        title=_("What the policy does"),
        figure={"data": traces, "layout": layout},
        summary="; ".join(f"{row[0]}: {_('fades')} {row[5]}, {_('is archived')} {row[6]}" for row in table),
        definitions=define("strength"),
        columns=[
            _("Example"),
            _("today"),
            *(formats.duration(timedelta(days=n)) for n in (30, 60, 90)),
            _("Fades"),
            _("Is archived"),
        ],
        rows=table,
    )


def _fate(moment: datetime | None) -> str:
    return _("after %(time)s") % {"time": formats.duration(moment - _START)} if moment else _("never")


def _line(height: float, color: str) -> dict[str, object]:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": height, "y1": height, "meta": {"color": color}}


def _note(height: float, text: str) -> dict[str, object]:
    return {
        "xref": "paper", "x": 1, "xanchor": "right", "y": height, "yanchor": "bottom", "text": text, "showarrow": False,
    }  # fmt: skip
