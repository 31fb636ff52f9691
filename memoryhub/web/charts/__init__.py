"""Figures as plain data for plotly: the server says what is drawn, static/js/charts.js says in which colours.

A chart is always more than its picture: a title, one sentence for those who don't see it, the definition of its figure, and the
same numbers as a table.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.utils.translation import pgettext

from memoryhub.web.figure_words import Definition


@dataclass(frozen=True, slots=True)
class Chart:
    """What partials/_chart.html shows."""

    id: str
    title: str
    figure: dict[str, Any]
    summary: str
    definitions: list[Definition]
    columns: list[str]
    rows: list[list[str]]
    size: str = ""
    open: bool = False

    @property
    def figure_id(self) -> str:
        return f"{self.id}-figure"


@dataclass(frozen=True, slots=True)
class Spark:
    """A small line without axes as two SVG paths in a box of 100 by 30."""

    line: str
    area: str
    kind: str = ""


@dataclass(slots=True)
class Trace:
    """One line, area or set of bars. `color` is a name of the theme: accent, teal, grey, good, bad, warn, violet."""

    name: str
    x: list[Any]
    y: list[Any]
    color: str = "accent"
    extra: dict[str, Any] = field(default_factory=dict)

    def line(self, *, fill: bool = False, hover: str = "") -> dict[str, Any]:
        """Return it as a line, filled down to zero when asked."""
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines+markers" if len(self.x) == 1 else "lines",
            "name": self.name,
            "x": self.x,
            "y": self.y,
            "meta": {"color": self.color},
            **self.extra,
        }
        if fill:
            trace["fill"] = "tozeroy"
        if hover:
            trace["hovertemplate"] = hover
        return trace

    def bars(self, *, pattern: str = "", horizontal: bool = False, hover: str = "") -> dict[str, Any]:
        """Return it as bars, with a pattern beside the colour when asked."""
        trace: dict[str, Any] = {
            "type": "bar",
            "name": self.name,
            "x": self.x,
            "y": self.y,
            "meta": {"color": self.color},
            **self.extra,
        }
        if horizontal:
            trace["orientation"] = "h"
        if pattern:
            trace["marker"] = {"pattern": {"shape": pattern}}
        if hover:
            trace["hovertemplate"] = hover
        return trace


def number(value: Decimal | float | int | None) -> float | None:
    """Return a figure for drawing; money stays exact in the table and loses its last digits only in the picture."""
    return None if value is None else float(value)


def spark(values: list[float | int | Decimal | None], kind: str = "") -> Spark | None:
    """Return a small line of the values, or None where fewer than two are known."""
    known = [(index, float(value)) for index, value in enumerate(values) if value is not None]
    if len(known) < 2:
        return None
    highest = max(value for _index, value in known)
    lowest = min(0.0, min(value for _index, value in known))
    span = (highest - lowest) or 1.0
    step = 100 / (len(values) - 1)
    points = [f"{index * step:.2f} {28 - (value - lowest) / span * 26:.2f}" for index, value in known]
    first, last = points[0].split()[0], points[-1].split()[0]
    line = "M" + "L".join(points)
    return Spark(line, f"{line}L{last} 30L{first} 30Z", kind)


def day_axis(ticks_shown: int = 6) -> dict[str, Any]:
    """Return an axis of days as this language writes them."""
    # Translators: dates on a chart's axis by the letters of d3's time format, for example "%-d %b"
    ticks = pgettext("chart axis", "%-d %b")
    # Translators: a date beside a chart's point by the letters of d3's time format, for example "%-d %b %Y"
    return {
        "type": "date",
        "tickformat": ticks,
        "hoverformat": pgettext("chart point", "%-d %b %Y"),
        "nticks": ticks_shown,
    }
