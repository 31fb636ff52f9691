"""What single requests add to the report: misses by cause in dollars, unread writes, waiting, the best plan's regret, advice."""

from dataclasses import dataclass, field
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryhub.common import clock
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.advice import fix_for
from memoryhub.prompt_cache.queries import Span, Waste, sum_waste
from memoryhub.prompt_cache.queries.miss_causes import CauseSum, sum_misses_by_cause
from memoryhub.prompt_cache.queries.plans import Regret, sum_regret
from memoryhub.web import formats
from memoryhub.web.cause_words import cause_name
from memoryhub.web.miss_words import PLANS
from memoryhub.web.ranges import DayRange
from memoryhub.workspaces.models import Workspace

ADVICE_SHOWN = 4
MissRow = tuple[str, Decimal, int, int]
Figure = tuple[str, str, str, str, str]  # label, value, note, tone, address


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
    figures: list[Figure] = field(default_factory=list)


def find(workspace: Workspace, days: DayRange) -> Findings:
    """Return the findings of these days."""
    span = Span(days.first, days.last, ZoneInfo(days.zone))
    causes = sum_misses_by_cause(workspace, span)
    waste = sum_waste(workspace, span, now=clock.now())
    return Findings(
        misses=[(cause_name(one.cause), one.missed_usd, one.missed_tokens, one.count) for one in causes],
        advice=[_advice(one, days) for one in causes if one.missed_usd and one.cause != "unknown"][:ADVICE_SHOWN],
        figures=[*_unread(waste), *_waiting(waste), *_regret(sum_regret(workspace, span))],
    )


def _advice(one: CauseSum, days: DayRange) -> Advice:
    href = f"{reverse('doctor')}?cause={one.cause}&from={days.first.isoformat()}&to={days.last.isoformat()}"
    count = ngettext("%(n)s miss", "%(n)s misses", one.count) % {"n": formats.count(one.count)}
    return Advice(cause_name(one.cause), _(fix_for(one.cause, None, None, None)), count, one.missed_usd, href)


def _unread(waste: Waste) -> list[Figure]:
    if not waste.requests:
        return []
    note = _("%(tokens)s tokens written and never read") % {"tokens": formats.tokens(waste.tokens)}
    return [(_("Unread writes"), formats.usd(money.usd(waste.premium_pico)), _noted(note, waste), "", "")]


def _waiting(waste: Waste) -> list[Figure]:
    if waste.hit_seconds is None or waste.miss_seconds is None:
        return []
    note = _("%(time)s without a cache read (medians)") % {"time": formats.duration(waste.miss_seconds)}
    return [(_("First byte on a hit"), formats.duration(waste.hit_seconds), _noted(note, waste), "", "")]


def _noted(note: str, waste: Waste) -> str:
    """Say so where not every request of the range was looked at."""
    return note if waste.complete else f"{note} · {_('of the newest requests only')}"


def _regret(regret: Regret) -> list[Figure]:
    """What the cheapest plan of each session would have saved; nothing where the planner knows no session."""
    if not regret.sessions:
        return []
    name = PLANS[regret.best_plan][0] if regret.best_plan else ""
    note = _("most by “%(plan)s”") % {"plan": name} if name else _("as sent was the cheapest")
    where = ngettext("%(n)s session replayed", "%(n)s sessions replayed", regret.sessions) % {
        "n": formats.count(regret.sessions)
    }
    tone = "down" if regret.regret_pico else "up"
    usd = formats.usd(money.usd(regret.regret_pico))
    return [(_("Another plan would save"), usd, f"{note} · {where}", tone, reverse("planner"))]
