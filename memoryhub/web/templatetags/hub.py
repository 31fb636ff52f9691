"""Template filters over web/formats.py: `{% load hub %}`, then {{ cost|usd }}, {{ changed_at|ago }} and so on."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memoryhub.web import formats, undo

register = template.Library()

register.filter("count", formats.count)
register.filter("capped_count", formats.capped_count)
register.filter("tokens", formats.tokens)
register.filter("percent", formats.percent)
register.filter("file_size", formats.file_size)
register.filter("duration", formats.duration)
register.filter("day", formats.day)
register.filter("when", formats.when)
register.filter("undoes", undo.change_set_of)


@register.filter
def usd(value: Any) -> str:
    """Dollars: {{ cost|usd }}."""
    return formats.usd(value)


@register.filter
def usd_exact(value: Any) -> str:
    """Dollars to the millionth: {{ cost|usd_exact }}."""
    return formats.usd(value, exact=True)


@register.filter
def ago(moment: datetime | None) -> SafeString:
    """A <time> with the rough distance as text and the exact moment as its title."""
    if moment is None:
        return format_html("{}", formats.ago(None))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), formats.when(moment), formats.ago(moment)
    )


@register.filter
def moment(value: datetime | None) -> SafeString:
    """A <time> with the exact moment in the viewer's zone."""
    if value is None:
        return format_html("{}", formats.when(None))
    return format_html('<time datetime="{}">{}</time>', value.isoformat(), formats.when(value))


@register.filter
def fixed(value: float | Decimal | None, digits: int = 2) -> str:
    """A number with so many digits: {{ strength|fixed:2 }}."""
    return formats.NOTHING if value is None else f"{float(value):.{digits}f}".replace("-", formats.MINUS)


@register.filter
def plain(value: float | Decimal | None) -> str:
    """A number as HTML attributes want it, whatever the language."""
    return "0" if value is None else format(float(value), ".6g")


@register.filter
def iso_day(value: date | datetime | None) -> str:
    """A date as <input type="date"> wants it."""
    if isinstance(value, datetime):
        value = timezone.localtime(value).date()
    return value.isoformat() if value else ""


@register.filter
def code_marks(text: str) -> SafeString:
    """Text with what stands between backticks as code: {{ fix|code_marks }}."""
    parts = str(text).split("`")
    if len(parts) % 2 == 0:
        return format_html("{}", text)
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if at % 2 else part,) for at, part in enumerate(parts))
    )


@register.filter
def last_segment(path: str) -> str:
    """The last segment of a path: a project is a whole folder, shown by its name."""
    return path.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1] or path
