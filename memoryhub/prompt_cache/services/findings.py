"""Summing up what needs single requests: the waste of days that are over, and how sessions compare with the best plan.

Both are found out by a job, a bounded share at a time, and thrown away by their marks: what they were made of is noted, and
where the daily sums say something else by now, they are made anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from django.db import transaction

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.simulator import PLANS, Simulation
from memoryhub.prompt_cache.domain.unread import LIFETIME_1H
from memoryhub.prompt_cache.models import DailyWaste, SessionPlan
from memoryhub.prompt_cache.queries.plans import GOOD_CALIBRATION, SessionUse, list_unplanned_sessions
from memoryhub.prompt_cache.queries.replays import MOST_RECORDS, UnknownSessionError, replay_session
from memoryhub.prompt_cache.queries.sums import Span, rollup_zone
from memoryhub.prompt_cache.queries.waste import Waste, busy_days, look_at, read_counted_days, what_was_seen
from memoryhub.workspaces.models import Workspace

# What one run looks at; the next one goes on.
REQUESTS_PER_RUN = 200_000
SESSIONS_PER_RUN = 40


@dataclass(frozen=True, slots=True)
class FoundOut:
    """How many days and sessions a run summed up."""

    days: int
    sessions: int


def find_out(*, workspace: Workspace) -> FoundOut:
    """Sum up days that are over and sessions that changed, the newest and dearest first; the same twice as once."""
    return FoundOut(count_waste(workspace=workspace), plan_sessions(workspace=workspace))


def count_waste(*, workspace: Workspace) -> int:
    """Look at the requests of days that are over and not summed up, or changed since; returns how many days."""
    zone_name = rollup_zone(workspace)
    if not zone_name:
        return 0
    zone, now = ZoneInfo(zone_name), clock.now()
    days = busy_days(workspace)
    DailyWaste.objects.filter(workspace=workspace).exclude(day__in=list(days)).delete()
    if not days:
        return 0
    known = read_counted_days(workspace, Span(min(days), max(days), zone))
    done = looked_at = 0
    for day in sorted(days.keys() - known.keys(), reverse=True):
        if not _is_over(day, zone, now):
            continue
        if looked_at >= REQUESTS_PER_RUN:
            break
        _store_waste(workspace, day, what_was_seen(days, day), look_at(workspace, Span(day, day, zone), now=now))
        looked_at += days[day][0]
        done += 1
    return done


def _is_over(day: date, zone: ZoneInfo, now: datetime) -> bool:
    """Whether all that was written on that day has been read by now, or has expired."""
    return now > Span(day, day, zone).end + LIFETIME_1H


def _store_waste(workspace: Workspace, day: date, seen: str, waste: Waste) -> None:
    DailyWaste.objects.update_or_create(
        workspace=workspace,
        day=day,
        defaults={
            "seen": seen,
            "unread_requests": waste.requests,
            "unread_tokens": waste.tokens,
            "unread_premium_pico": waste.premium_pico,
            "hit_waits": {str(number): count for number, count in sorted(waste.hit_waits.items())},
            "miss_waits": {str(number): count for number, count in sorted(waste.miss_waits.items())},
        },
    )


def plan_sessions(*, workspace: Workspace) -> int:
    """Replay the dearest sessions that have no plan yet, or more usage than it knows, under all plans; returns how many."""
    done = 0
    for use in list_unplanned_sessions(workspace, limit=SESSIONS_PER_RUN):
        try:
            replayed = replay_session(workspace, session=use.session, plans=PLANS)
        except UnknownSessionError:
            continue
        _store_plan(workspace, use, replayed.simulation, cut=replayed.requests >= MOST_RECORDS)
        done += 1
    return done


def _store_plan(workspace: Workspace, use: SessionUse, simulation: Simulation, *, cut: bool) -> None:
    """Note what a session was found to cost; also that it can't be compared, or it would be looked at for ever."""
    priced = {one.plan: one.cost_pico for one in simulation.replays if one.cost_pico is not None}
    best = min(priced, key=lambda plan: (priced[plan], plan != "actual"), default="")
    error = simulation.calibration_error
    SessionPlan.objects.update_or_create(
        workspace=workspace,
        session=use.session,
        defaults={
            "last_day": use.last_day,
            "requests": use.requests,
            "cost_pico": use.cost_pico,
            "best_plan": best,
            "actual_pico": priced.get("actual", 0),
            "best_pico": priced[best] if "actual" in priced else 0,
            "well_replayed": "actual" in priced and error is not None and error <= GOOD_CALIBRATION and not cut,
        },
    )


def forget_findings(*, workspace: Workspace, before: date) -> None:
    """Forget the sums of days, and the plans of sessions, that are older than a day."""
    with transaction.atomic():
        DailyWaste.objects.filter(workspace=workspace, day__lt=before).delete()
        SessionPlan.objects.filter(workspace=workspace, last_day__lt=before).delete()
