"""What changed since the days before, and why: three effects in dollars, and the groups that moved most."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.cost_change import CostChange, Period, explain_change
from memoryhub.prompt_cache.queries import CostSummary, Sums
from memoryhub.prompt_cache.queries.sums import Span, sum_usage
from memoryhub.web import formats
from memoryhub.web.ranges import DayRange
from memoryhub.workspaces.models import Workspace

MOVERS_SHOWN = 4
LEAST_SHOWN_PICO = 10**9  # a tenth of a cent: less is no reason


@dataclass(frozen=True, slots=True)
class Reason:
    """One effect, or one group that moved: by how much, and what stands behind it."""

    text: str
    note: str
    difference: str
    tone: str


@dataclass(frozen=True, slots=True)
class Change:
    """Empty where there is nothing to compare with."""

    reasons: list[Reason]
    movers: list[Reason]


@dataclass(frozen=True, slots=True)
class GroupsBefore:
    """The groups of the days before, by name; None where they are not compared."""

    sums: dict[str, Sums] | None

    def difference(self, name: str, now: Sums) -> tuple[str, str]:
        """Return how much dearer a group became, as text and tone; nothing where it is not compared."""
        if self.sums is None:
            return "", ""
        return signed_usd(now.cost_pico - self.sums.get(name, Sums()).cost_pico)


def groups_before(workspace: Workspace, days: DayRange, group: str, *, compare: bool) -> GroupsBefore:
    """Read the groups of the days before. A session has no days before."""
    if not compare or group == "session":
        return GroupsBefore(None)
    span = Span(days.first, days.last, ZoneInfo(days.zone)).previous()
    return GroupsBefore({name: sums for (name,), sums in sum_usage(workspace, span, [group]).items()})


def explain(summary: CostSummary, now: dict[str, Sums], before: GroupsBefore, label: Any) -> Change:
    """Return the effects, and the groups whose cost moved most."""
    change = explain_change(_period(summary.totals), _period(summary.previous))
    if change is None:
        return Change([], [])
    return Change(_reasons(change, summary.totals, summary.previous), _movers(now, before.sums or {}, label))


def signed_usd(pico: int) -> tuple[str, str]:
    """Return a difference of cost with its sign, and its tone; less cost is good."""
    amount = formats.usd(abs(money.usd(pico)))
    return (f"+{amount}", "down") if pico > 0 else (f"{formats.MINUS}{amount}", "up") if pico < 0 else (amount, "")


def _period(sums: Sums) -> Period:
    return Period(sums.requests, sums.nocache_pico, sums.cost_pico)


def _reasons(change: CostChange, now: Sums, before: Sums) -> list[Reason]:
    more = now.requests >= before.requests
    larger = change.size_pico >= 0
    worse = change.caching_pico >= 0
    found = [
        (
            change.requests_pico,
            _("More requests") if more else _("Fewer requests"),
            f"{formats.count(before.requests)} → {formats.count(now.requests)}",
        ),
        (
            change.size_pico,
            _("Larger requests, or dearer models") if larger else _("Smaller requests, or cheaper models"),
            _("%(before)s → %(now)s each, without cache") % {"before": _each(before), "now": _each(now)},
        ),
        (
            change.caching_pico,
            _("The cache saved less") if worse else _("The cache saved more"),
            _("hit rate %(before)s → %(now)s")
            % {"before": formats.percent(before.hit_rate), "now": formats.percent(now.hit_rate)},
        ),
    ]
    return [Reason(text, note, *signed_usd(pico)) for pico, text, note in found if abs(pico) >= LEAST_SHOWN_PICO]


def _each(sums: Sums) -> str:
    return formats.usd(sums.nocache_usd / sums.requests if sums.requests else Decimal(0))


def _movers(now: dict[str, Sums], before: dict[str, Sums], label: Any) -> list[Reason]:
    moved = []
    for name in now.keys() | before.keys():
        new, old = now.get(name, Sums()), before.get(name, Sums())
        pico = new.cost_pico - old.cost_pico
        if abs(pico) >= LEAST_SHOWN_PICO:
            moved.append((pico, name, new, old))
    moved.sort(key=lambda row: (-abs(row[0]), row[1]))
    return [
        Reason(label(name), _mover_note(new, old), *signed_usd(pico)) for pico, name, new, old in moved[:MOVERS_SHOWN]
    ]


def _mover_note(now: Sums, before: Sums) -> str:
    if not before.requests:
        return _("new")
    if not now.requests:
        return _("no longer used")
    return _("%(before)s → %(now)s requests, hit rate %(rate_before)s → %(rate_now)s") % {
        "before": formats.count(before.requests),
        "now": formats.count(now.requests),
        "rate_before": formats.percent(before.hit_rate),
        "rate_now": formats.percent(now.hit_rate),
    }
