"""The cost report's charts, from the ledger's sums."""

from collections.abc import Sequence
from decimal import Decimal

from django.utils.translation import gettext as _

from memoryhub.prompt_cache.queries import CostSummary, DayCosts, Sums
from memoryhub.web import formats
from memoryhub.web.charts import Chart, Trace, day_axis, number
from memoryhub.web.figure_words import define

# (attribute of Sums, label, colour of the theme, pattern beside the colour)
_TOKEN_KINDS = (
    ("cache_read_tokens", "teal", ""),
    ("cache_write_5m_tokens", "accent", "/"),
    ("cache_write_1h_tokens", "violet", "x"),
    ("input_tokens", "grey", ""),
    ("output_tokens", "warn", "."),
)


def _days(days: Sequence[DayCosts]) -> list[str]:
    return [point.day.isoformat() for point in days]


def _step(summary: CostSummary) -> str:
    """The heading over days or weeks."""
    return _("Week from") if summary.by_week else _("Day")


def cost_chart(summary: CostSummary) -> Chart:
    """Cost against what the same requests would have cost without the cache."""
    days, x = summary.days, _days(summary.days)
    without = Trace(_("Without cache"), x, [number(p.sums.nocache_usd) for p in days], "grey").line(
        fill=True, hover="$%{y:,.2f}"
    )
    cost = Trace(_("Cost"), x, [number(p.sums.cost_usd) for p in days], "accent").line(fill=True, hover="$%{y:,.2f}")
    return Chart(
        id="chart-cost",
        title=_("Cost and what it would have been"),
        figure={
            "data": [without, cost],
            "layout": {"xaxis": day_axis(), "yaxis": {"tickprefix": "$", "rangemode": "tozero"}},
        },
        summary=(
            _("Cost %(cost)s in total, %(nocache)s without cache; the dearest week began on %(day)s.")
            if summary.by_week
            else _("Cost %(cost)s in total, %(nocache)s without cache; the dearest day was %(day)s.")
        )
        % {
            "cost": formats.usd(summary.totals.cost_usd),
            "nocache": formats.usd(summary.totals.nocache_usd),
            "day": _dearest_day(days),
        },
        definitions=define("cost", "nocache"),
        columns=[_step(summary), _("Requests"), _("Cost"), _("Without cache"), _("Net saving")],
        rows=[
            [
                formats.day(p.day),
                formats.count(p.sums.requests),
                formats.usd(p.sums.cost_usd),
                formats.usd(p.sums.nocache_usd),
                formats.usd(p.sums.net_saving_usd),
            ]
            for p in days
        ]
        if not summary.totals.is_empty
        else [],
    )


def _dearest_day(days: Sequence[DayCosts]) -> str:
    dearest = max(days, key=lambda point: point.sums.cost_pico)
    return f"{formats.day(dearest.day)} ({formats.usd(dearest.sums.cost_usd)})"


def saving_chart(summary: CostSummary) -> Chart:
    """Net saving added up from the first day on; it can fall, and below zero."""
    days = summary.days
    total = [number(Decimal(p.cumulative_net_pico).scaleb(-12)) for p in days]
    trace = Trace(_("Net saving"), _days(days), total, "teal").line(fill=True, hover="$%{y:,.2f}")
    return Chart(
        id="chart-saving",
        title=_("Net saving, added up"),
        figure={"data": [trace], "layout": {"xaxis": day_axis(), "yaxis": {"tickprefix": "$"}, "showlegend": False}},
        summary=_("Net saving of %(saving)s at the end of the range.")
        % {"saving": formats.usd(summary.totals.net_saving_usd)},
        definitions=define("net_saving"),
        columns=[_step(summary), _("Net saving"), _("Added up")],
        rows=[
            [
                formats.day(p.day),
                formats.usd(p.sums.net_saving_usd),
                formats.usd(Decimal(p.cumulative_net_pico).scaleb(-12)),
            ]
            for p in days
        ]
        if not summary.totals.is_empty
        else [],
        size="short",
    )


def hit_rate_chart(summary: CostSummary) -> Chart:
    """The share of prompt tokens read from the cache; days without requests are gaps, not zeros."""
    days = summary.days
    rates = [p.sums.hit_rate for p in days]
    trace = Trace(_("Hit rate (tokens)"), _days(days), rates, "accent", {"connectgaps": False}).line(hover="%{y:.1%}")
    lonely = sum(1 for rate in rates if rate is not None) <= 2
    trace["mode"] = "lines+markers" if lonely else trace["mode"]
    axis = {"tickformat": ".0%", "range": [0, 1.02]}
    return Chart(
        id="chart-hit-rate",
        title=_("Hit rate (tokens)"),
        figure={"data": [trace], "layout": {"xaxis": day_axis(), "yaxis": axis, "showlegend": False}},
        summary=_("Hit rate of %(rate)s over the range.") % {"rate": formats.percent(summary.totals.hit_rate)},
        definitions=define("hit_rate"),
        columns=[_step(summary), _("Hit rate (tokens)"), _("Cache read"), _("Prompt tokens")],
        rows=[
            [
                formats.day(p.day),
                formats.percent(p.sums.hit_rate),
                formats.tokens(p.sums.cache_read_tokens),
                formats.tokens(p.sums.prompt_tokens),
            ]
            for p in days
        ]
        if summary.totals.prompt_tokens
        else [],
        size="short",
    )


def _token_labels() -> dict[str, str]:
    return {
        "cache_read_tokens": _("Cache read"),
        "cache_write_5m_tokens": _("Cache write, 5 min"),
        "cache_write_1h_tokens": _("Cache write, 1 h"),
        "input_tokens": _("Uncached input"),
        "output_tokens": _("Output"),
    }


def tokens_chart(summary: CostSummary) -> Chart:
    """Tokens of each kind by day, stacked; patterns tell the kinds apart without colour."""
    days, labels = summary.days, _token_labels()
    traces = [
        Trace(labels[name], _days(days), [getattr(p.sums, name) for p in days], color).bars(
            pattern=pattern, hover="%{y:.3s}"
        )
        for name, color, pattern in _TOKEN_KINDS
        if getattr(summary.totals, name)
    ]
    return Chart(
        id="chart-tokens",
        title=_("Tokens by kind"),
        figure={"data": traces, "layout": {"barmode": "stack", "xaxis": day_axis(), "yaxis": {"tickformat": "~s"}}},
        summary=", ".join(
            f"{labels[name]} {formats.tokens(getattr(summary.totals, name))}" for name, _c, _p in _TOKEN_KINDS
        ),
        definitions=define("tokens"),
        columns=[_step(summary), *(labels[name] for name, _c, _p in _TOKEN_KINDS)],
        rows=[[formats.day(p.day), *(formats.tokens(getattr(p.sums, n)) for n, _c, _p in _TOKEN_KINDS)] for p in days]
        if summary.totals.tokens
        else [],
        size="short",
    )


def misses_chart(causes: Sequence[tuple[str, Decimal, int, int]]) -> Chart:
    """Dollars lost to misses by cause, the dearest on top. Takes (label, dollars, tokens, misses)."""
    shown = list(reversed(causes[:10]))
    trace = Trace(
        _("Missed"), [number(usd) for _l, usd, _t, _n in shown], [label for label, _u, _t, _n in shown], "bad"
    ).bars(horizontal=True, hover="%{y}: $%{x:,.2f}<extra></extra>")
    layout = {
        "xaxis": {"tickprefix": "$", "showgrid": True, "rangemode": "tozero"},
        "yaxis": {"showgrid": False, "automargin": True},
        "showlegend": False,
        "hovermode": "closest",
    }
    total = sum((usd for _l, usd, _t, _n in causes), Decimal(0))
    return Chart(
        id="chart-misses",
        title=_("Misses by cause, in dollars"),
        figure={"data": [trace], "layout": layout},
        summary=_("Misses cost %(usd)s in total.") % {"usd": formats.usd(total)},
        definitions=define("misses"),
        columns=[_("Cause"), _("Missed"), _("Tokens"), _("Misses")],
        rows=[
            [label, formats.usd(usd), formats.tokens(tokens), formats.count(count)]
            for label, usd, tokens, count in causes
        ],
        size="short",
    )


def saving_share(sums: Sums) -> str:
    """Return the net saving as a share of the uncached cost."""
    return formats.percent(sums.net_saving_pico / sums.nocache_pico) if sums.nocache_pico else formats.NOTHING
