"""What single requests add to the report: misses by cause in dollars, writes that nobody read, waiting, and advice."""

from dataclasses import dataclass, field
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.translation import gettext as _

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.advice import fix_for
from memoryhub.prompt_cache.queries import Span, first_byte_times, sum_unread_writes
from memoryhub.prompt_cache.queries.miss_causes import CauseSum, sum_misses_by_cause
from memoryhub.web import formats
from memoryhub.web.cause_words import cause_name
from memoryhub.web.ranges import DayRange
from memoryhub.workspaces.models import Workspace

ADVICE_SHOWN = 4
MissRow = tuple[str, Decimal, int, int]


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, why, and what it would have saved."""

    cause: str
    text: str
    count: str
    usd: Decimal
    href: str


@dataclass(frozen=True, slots=True)
class Findings:
    """Empty where no request was diagnosed."""

    misses: list[MissRow] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    figures: list[tuple[str, str, str]] = field(default_factory=list)  # (label, value, note)


def find(workspace: Workspace, days: DayRange) -> Findings:
    """Return the findings of these days."""
    zone = ZoneInfo(days.zone)
    causes = sum_misses_by_cause(workspace, Span(days.first, days.last, zone))
    return Findings(
        misses=[(cause_name(one.cause), one.missed_usd, one.missed_tokens, one.count) for one in causes],
        advice=[_advice(one, days) for one in causes if one.missed_usd and one.cause != "unknown"][:ADVICE_SHOWN],
        figures=[*_unread(workspace, days, zone), *_waiting(workspace, days, zone)],
    )


def _advice(one: CauseSum, days: DayRange) -> Advice:
    href = f"{reverse('doctor')}?cause={one.cause}&from={days.first.isoformat()}&to={days.last.isoformat()}"
    count = _("%(n)s misses") % {"n": formats.count(one.count)}
    return Advice(cause_name(one.cause), _(fix_for(one.cause, None, None, None)), count, one.missed_usd, href)


def _unread(workspace: Workspace, days: DayRange, zone: ZoneInfo) -> list[tuple[str, str, str]]:
    unread = sum_unread_writes(workspace, first=days.first, last=days.last, zone=zone, now=clock.now())
    if unread is None or not unread.requests:
        return []
    note = _("%(tokens)s tokens written and never read") % {"tokens": formats.tokens(unread.tokens)}
    return [(_("Unread writes"), formats.usd(Decimal(unread.premium_pico).scaleb(-12)), note)]


def _waiting(workspace: Workspace, days: DayRange, zone: ZoneInfo) -> list[tuple[str, str, str]]:
    times = first_byte_times(workspace, first=days.first, last=days.last, zone=zone)
    if times is None or times.hit_seconds is None or times.miss_seconds is None:
        return []
    note = _("%(time)s without a cache read (medians)") % {"time": formats.duration(times.miss_seconds)}
    return [(_("First byte on a hit"), formats.duration(times.hit_seconds), note)]
