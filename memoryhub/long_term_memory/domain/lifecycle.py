"""Which state a memory is in, and since when: the moment its curve crossed, not the moment a job looked."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from memoryhub.long_term_memory.domain.decay import Curve, DecayPolicy

State = Literal["active", "fading", "archived", "forgotten"]
STATES: tuple[State, ...] = ("active", "fading", "archived", "forgotten")
CURRENT_STATES: tuple[State, ...] = ("active", "fading")  # what a recall returns


@dataclass(frozen=True)
class Standing:
    """A state with the moment it began."""

    state: State
    since: datetime


def judge(standing: Standing, curve: Curve, policy: DecayPolicy, now: datetime) -> Standing:
    """Where a memory stands at `now`, given where it stood. Only people and agents bring an archived memory back."""
    if standing.state == "forgotten":
        return standing
    if standing.state == "archived":
        return _maybe_forgotten(standing, policy, curve, now)
    if curve.archives_at is not None and curve.archives_at <= now:
        archived = Standing("archived", max(curve.archives_at, curve.idle_since))
        return _maybe_forgotten(archived, policy, curve, now)
    if curve.fades_at is not None and curve.fades_at <= now:
        return Standing("fading", standing.since if standing.state == "fading" else curve.fades_at)
    return standing if standing.state == "active" else Standing("active", now)


def _maybe_forgotten(archived: Standing, policy: DecayPolicy, curve: Curve, now: datetime) -> Standing:
    forgets_at = forget_moment(archived, policy, curve)
    if forgets_at is not None and forgets_at <= now:
        return Standing("forgotten", forgets_at)
    return archived


def forget_moment(archived: Standing, policy: DecayPolicy, curve: Curve) -> datetime | None:
    """When an archived memory goes to the trash by itself; a pinned or protected one never does."""
    if policy.forget_after_days is None or curve.daily_loss == 0:
        return None
    try:
        return archived.since + timedelta(days=policy.forget_after_days)
    except OverflowError:
        return None
