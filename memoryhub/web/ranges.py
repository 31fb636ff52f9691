"""Ranges of days in an address: presets, or from and to; and the zone that cuts the days."""

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memoryhub.common import clock
from memoryhub.web import formats
from memoryhub.web.access import known_zone

PRESETS: dict[str, Any] = {
    "7d": gettext_lazy("7 days"),
    "28d": gettext_lazy("28 days"),
    "90d": gettext_lazy("90 days"),
    "month": gettext_lazy("This month"),
    "last-month": gettext_lazy("Last month"),
}
DEFAULT_PRESET = "28d"
LONGEST_DAYS = 800


@dataclass(frozen=True, slots=True)
class DayRange:
    """Days from first to last, both inclusive, in a zone; preset is empty where the days were chosen by hand."""

    first: date
    last: date
    zone: str
    preset: str
    complaint: str = ""

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def text(self) -> str:
        """3 Nov – 30 Nov 2026, 2026年11月3日 – 11月30日."""
        return formats.days(self.first, self.last)


def read_range(query: QueryDict, *, default_zone: str) -> DayRange:
    """Return the range that the address asks for; what can't be read falls back to the default and says so."""
    asked = query.get("tz", "")
    zone = known_zone(asked) or default_zone
    complaint = _("This time zone is not known.") if asked and not known_zone(asked) else ""
    today = clock.now().astimezone(ZoneInfo(zone)).date()
    if query.get("from") or query.get("to"):
        return _chosen(query, zone, today, complaint)
    preset = query.get("range", "") if query.get("range", "") in PRESETS else DEFAULT_PRESET
    first, last = preset_days(preset, today)
    return DayRange(first, last, zone, preset, complaint)


def preset_days(preset: str, today: date) -> tuple[date, date]:
    """Return the first and last day of a preset, today included."""
    if preset == "month":
        return today.replace(day=1), today
    if preset == "last-month":
        last = today.replace(day=1) - timedelta(days=1)
        return last.replace(day=1), last
    return today - timedelta(days=int(preset.removesuffix("d")) - 1), today


def _chosen(query: QueryDict, zone: str, today: date, complaint: str) -> DayRange:
    first, last = _read_day(query.get("from", "")), _read_day(query.get("to", ""))
    if (query.get("from") and first is None) or (query.get("to") and last is None):
        complaint = _("This is not a date.")
    last = last or today
    first = first or preset_days(DEFAULT_PRESET, last)[0]
    if first > last:
        first, last, complaint = last, first, complaint or _("The first day was after the last; they are swapped.")
    if (last - first).days >= LONGEST_DAYS:
        first, complaint = (
            last - timedelta(days=LONGEST_DAYS - 1),
            _("The range is cut to %(n)s days.") % {"n": LONGEST_DAYS},
        )
    return DayRange(first, last, zone, "", complaint)


def _read_day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if 2000 <= day.year <= 2200 else None
