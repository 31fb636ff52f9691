"""What the planner knows of sessions: what another plan would have saved, and which sessions it has yet to look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import Count, Max, Sum

from memoryhub.prompt_cache.models import DailyUsage, Dimension, SessionPlan
from memoryhub.prompt_cache.queries.sums import Span
from memoryhub.workspaces.models import Workspace

GOOD_CALIBRATION = 0.02  # share of the tokens; up to here a replay explains the bill
SESSIONS_LOOKED_AT = 500  # the dearest ones: together they are nearly all of the money


@dataclass(frozen=True, slots=True)
class SessionUse:
    """What the daily sums say of a session."""

    session: str
    requests: int
    cost_pico: int
    last_day: date


def list_unplanned_sessions(workspace: Workspace, *, limit: int) -> list[SessionUse]:
    """The dearest sessions whose plan is missing or was made of other usage."""
    rows = (
        DailyUsage.objects.filter(workspace=workspace, dimension=Dimension.SESSION)
        .exclude(value="")
        .values_list("value")
        .annotate(total_requests=Sum("requests"), total_pico=Sum("cost_pico"), last_day=Max("day"))
        .filter(total_requests__gt=1)
        .order_by("-total_pico", "value")[:SESSIONS_LOOKED_AT]
    )
    uses = [SessionUse(*row) for row in rows]
    known = {
        session: (requests, cost)
        for session, requests, cost in SessionPlan.objects.filter(
            workspace=workspace, session__in=[use.session for use in uses]
        ).values_list("session", "requests", "cost_pico")
    }
    return [use for use in uses if known.get(use.session) != (use.requests, use.cost_pico)][:limit]


@dataclass(frozen=True, slots=True)
class Regret:
    """What sessions cost more than under their cheapest plan, and by which plan most would have been saved."""

    sessions: int  # that were replayed well enough to be compared
    actual_pico: int
    regret_pico: int
    best_plan: str = ""


def sum_regret(workspace: Workspace, span: Span) -> Regret:
    """The regret of the sessions whose latest usage lies in these days; only those whose replay explains their bill."""
    plans = SessionPlan.objects.filter(workspace=workspace, last_day__range=(span.first, span.last), well_replayed=True)
    rows = plans.values_list("best_plan").annotate(
        sessions=Count("pk"), actual=Sum("actual_pico"), best=Sum("best_pico")
    )
    found = [(plan, sessions, actual, actual - best) for plan, sessions, actual, best in rows]
    winner = max(found, key=lambda row: (row[3], row[0]), default=None)
    return Regret(
        sessions=sum(row[1] for row in found),
        actual_pico=sum(row[2] for row in found),
        regret_pico=sum(row[3] for row in found),
        best_plan=winner[0] if winner and winner[3] else "",
    )


def regrets_of(workspace: Workspace, sessions: Iterable[str]) -> dict[str, SessionPlan]:
    """The plans of some sessions that were replayed well, by session."""
    rows = SessionPlan.objects.filter(workspace=workspace, session__in=list(sessions), well_replayed=True)
    return {row.session: row for row in rows}
