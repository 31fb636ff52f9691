"""How figures, times and sizes are written for people, in both languages. Pages and template filters share these."""

from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from memoryhub.common import clock
from memoryhub.common.keyset import COUNT_CAP

MINUS = "\N{MINUS SIGN}"
NOTHING = "\N{EM DASH}"
_SECOND, _MINUTE, _HOUR, _DAY = 1, 60, 3600, 86400


def count(value: int | None) -> str:
    """Return a whole number with grouped digits: 1,284."""
    return NOTHING if value is None else f"{value:,}".replace("-", MINUS)


def capped_count(value: int) -> str:
    """Return a count that was read only up to COUNT_CAP: 10,000+ beyond."""
    return f"{COUNT_CAP:,}+" if value > COUNT_CAP else f"{value:,}"


def usd(value: Decimal | str | float | None, *, exact: bool = False) -> str:
    """Return dollars to the cent; amounts below ten cents keep the digits that say something; `exact` keeps six."""
    if value is None:
        return NOTHING
    try:
        amount = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        return NOTHING
    size = abs(amount)
    places = 6 if exact else 2 if size >= Decimal("0.1") or not size else 4 if size >= Decimal("0.0005") else 6
    rounded = size.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)
    sign = MINUS if amount < 0 and rounded else ""
    return f"{sign}${rounded:,}"


def tokens(value: int | None) -> str:
    """Return a number of tokens, short: 950, 12.3 k, 4.56 M."""
    if value is None:
        return NOTHING
    size = abs(value)
    sign = MINUS if value < 0 else ""
    for unit, divisor in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if size >= divisor:
            figure = size / divisor
            digits = 2 if figure < 10 else 1 if figure < 100 else 0
            return f"{sign}{figure:,.{digits}f} {unit}"
    return f"{sign}{size}"


def percent(value: float | Decimal | None, digits: int = 1) -> str:
    """Return a share (0..1) as a percentage: 93.1 %."""
    if value is None:
        return NOTHING
    text = f"{float(value) * 100:,.{digits}f}".replace("-", MINUS)
    return pgettext("a percentage", "%(number)s %%") % {"number": text}


def file_size(value: int | None) -> str:
    """Return bytes in the unit that reads best: 5.2 MB."""
    if value is None:
        return NOTHING
    figure = float(value)
    for unit in ("B", "KB", "MB", "GB"):
        if abs(figure) < 1024:
            return f"{figure:.0f} {unit}" if unit == "B" or figure >= 100 else f"{figure:.1f} {unit}"
        figure /= 1024
    return f"{figure:,.1f} TB"


def duration(seconds: float | timedelta | None) -> str:
    """Return a length of time in the two units that matter: 350 ms, 42 s, 3 min 20 s, 5 h 12 min, 3 days."""
    if seconds is None:
        return NOTHING
    total = seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    if abs(total) < 1:
        return _("%(n)s ms") % {"n": f"{total * 1000:.0f}"}
    whole = round(total)
    if whole < _MINUTE:
        return _("%(n)s s") % {"n": f"{total:.1f}" if total < 10 and total != whole else whole}
    if whole < _HOUR:
        minutes, rest = divmod(whole, _MINUTE)
        text = _("%(n)s min") % {"n": minutes}
        return f"{text} {_('%(n)s s') % {'n': rest}}" if rest and minutes < 10 else text
    if whole < 2 * _DAY:
        hours, rest = divmod(whole, _HOUR)
        text = _("%(n)s h") % {"n": hours}
        return f"{text} {_('%(n)s min') % {'n': rest // _MINUTE}}" if rest >= _MINUTE else text
    return ngettext("%(n)s day", "%(n)s days", whole // _DAY) % {"n": whole // _DAY}


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago a moment was, or how far ahead: just now, 3 minutes ago, in 2 days, 12 Nov 2026."""
    if moment is None:
        return pgettext("a moment", "never")
    seconds = ((now or clock.now()) - moment).total_seconds()
    ahead, size = seconds < 0, abs(seconds)
    if size < 5:
        return _("just now")
    if size >= 28 * _DAY:
        return day(timezone.localtime(moment).date())
    number, text = _rough(size)
    wording = _("in %(time)s") if ahead else _("%(time)s ago")
    return wording % {"time": text % {"n": number}}


def _rough(size: float) -> tuple[int, str]:
    if size < _MINUTE:
        n = int(size)
        return n, ngettext("%(n)s second", "%(n)s seconds", n)
    if size < _HOUR:
        n = int(size // _MINUTE)
        return n, ngettext("%(n)s minute", "%(n)s minutes", n)
    if size < _DAY:
        n = int(size // _HOUR)
        return n, ngettext("%(n)s hour", "%(n)s hours", n)
    n = int(size // _DAY)
    return n, ngettext("%(n)s day", "%(n)s days", n)


def day(value: date | None) -> str:
    """Return a date in the viewer's language: 12 Nov 2026, 2026年11月12日."""
    if value is None:
        return NOTHING
    # Translators: a date by the letters of PHP's date(), for example "12 Nov 2026"
    return date_format(value, pgettext("date format", "j M Y"))


def short_day(value: date) -> str:
    """Return a date of this year without the year: 12 Nov."""
    # Translators: a date without its year, for example "12 Nov"
    return date_format(value, pgettext("date format without year", "j M"))


def days(first: date, last: date) -> str:
    """Return a range of days that names a shared year once, where the language puts it: 3 Nov – 30 Nov 2026."""
    if first == last:
        return day(last)
    if first.year != last.year:
        return f"{day(first)} – {day(last)}"
    # Translators: "year last" where a date ends in its year (3 Nov – 30 Nov 2026), "year first" where it begins with it
    if pgettext("a range of days", "year last") == "year first":
        return f"{day(first)} – {short_day(last)}"
    return f"{short_day(first)} – {day(last)}"


def when(moment: datetime | None) -> str:
    """Return a moment in the viewer's zone to the minute: 12 Nov 2026, 14:03."""
    if moment is None:
        return pgettext("a moment", "never")
    # Translators: a moment by the letters of PHP's date(), for example "12 Nov 2026, 14:03"
    return date_format(timezone.localtime(moment), pgettext("moment format", "j M Y, H:i"))


def change(now_value: Any, before: Any) -> tuple[str, str]:
    """Return by how much a figure changed as (text, direction), direction "more", "less", "same" or "" where there is no base."""
    if before in (None, 0) or now_value is None:
        return "", ""
    share = (Decimal(str(now_value)) - Decimal(str(before))) / abs(Decimal(str(before)))
    if abs(share) < Decimal("0.0005"):
        return _("unchanged"), "same"
    arrow = "▲" if share > 0 else "▼"
    size = percent(abs(share), 0 if abs(share) >= 1 else 1)
    return f"{arrow} {size}", "more" if share > 0 else "less"
