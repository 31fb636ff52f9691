"""How a memory's strength falls while nobody uses it, and when it will cross a threshold.

Strength is never counted down step by step: it is a function of (importance, when the memory was last used, how often,
the policy, now). Asking once, twice or after a week's outage therefore gives the same answer.
"""

import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

CurveName = Literal["seed", "half_life"]
CURVES: tuple[CurveName, ...] = ("seed", "half_life")
SECONDS_PER_DAY = 86_400
MAX_DAYS = 36_500  # a hundred years: what lies further away is "never"
IMPORT_GRACE_DAYS = 30  # an imported memory is not archived by itself sooner than this after its import
FIRST_DAYS = 1  # nothing is archived sooner after its last use, however unimportant: it was wanted just now
TRASH_DAYS = 30  # how long a forgotten memory can still be restored


@dataclass(frozen=True)
class DecayPolicy:
    """The rules of one workspace, or of one kind or tag in it."""

    curve: CurveName = "seed"
    factor: float = 0.95  # what is left of the strength after one idle day
    half_life_days: float = 30.0  # of the half_life curve
    floor: float = 0.05  # strength does not fall below this (nor below the importance, where that is smaller)
    fade_threshold: float = 0.3
    archive_threshold: float = 0.1
    forget_after_days: float | None = 180.0  # of being archived; None keeps for ever
    access_window_seconds: int = 3600  # several recalls inside one window count as one access
    protected_tags: frozenset[str] = frozenset({"protected"})  # such memories never fade

    def validated(self) -> "DecayPolicy":
        """Return itself, or raise ValueError with a sentence that names the field."""
        if self.curve not in CURVES:
            raise ValueError(f"curve must be one of {', '.join(CURVES)}")
        if not 0 < self.factor < 1:
            raise ValueError("factor must lie between 0 and 1, both excluded")
        if not 0 < self.half_life_days <= MAX_DAYS:
            raise ValueError(f"half_life_days must be above 0 and at most {MAX_DAYS}")
        for name in ("floor", "fade_threshold", "archive_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1")
        if self.archive_threshold > self.fade_threshold:
            raise ValueError("archive_threshold must not be above fade_threshold")
        if self.forget_after_days is not None and not 0 <= self.forget_after_days <= MAX_DAYS:
            raise ValueError(f"forget_after_days must lie between 0 and {MAX_DAYS}, or be null for never")
        if not 0 <= self.access_window_seconds <= 30 * SECONDS_PER_DAY:
            raise ValueError("access_window_seconds must lie between 0 and 2592000")
        return self

    def daily_loss(self, access_count: int) -> float:
        """The exponent per idle day: strength = importance * exp(-daily_loss * days_idle)."""
        if self.curve == "half_life":
            return math.log(2) / self.half_life_days
        return -math.log(self.factor) / max(access_count, 1)


@dataclass(frozen=True)
class PolicyBook:
    """A workspace's policy with its exceptions. A tag's exception wins over a kind's; the tags are tried by name."""

    base: DecayPolicy = field(default_factory=DecayPolicy)
    by_kind: dict[str, dict[str, Any]] = field(default_factory=dict)
    by_tag: dict[str, dict[str, Any]] = field(default_factory=dict)

    def policy_for(self, kind: str, tags: frozenset[str]) -> DecayPolicy:
        """The policy of a memory of this kind with these tags."""
        policy = self.base
        if kind in self.by_kind:
            policy = replace(policy, **self.by_kind[kind])
        for tag in sorted(tags & self.by_tag.keys())[:1]:
            policy = replace(policy, **self.by_tag[tag])
        return policy


@dataclass(frozen=True)
class MemoryFacts:
    """What the curve of one memory depends on."""

    importance: float
    idle_since: datetime  # last access, creation or restart of the curve, whichever is latest
    access_count: int = 0
    pinned: bool = False
    kind: str = "semantic"
    tags: frozenset[str] = frozenset()
    imported_at: datetime | None = None


@dataclass(frozen=True)
class Curve:
    """One memory's strength over time, and the moments at which it crosses the thresholds (None: never)."""

    importance: float
    idle_since: datetime
    daily_loss: float
    floor: float
    fades_at: datetime | None
    archives_at: datetime | None

    def strength_at(self, now: datetime) -> float:
        """Strength at a moment; before `idle_since` it is the importance."""
        days_idle = max(0.0, (now - self.idle_since).total_seconds() / SECONDS_PER_DAY)
        return max(self.floor, self.importance * math.exp(-self.daily_loss * days_idle))


def draw_curve(facts: MemoryFacts, policy: DecayPolicy) -> Curve:
    """The curve of a memory under a policy. A pinned or protected memory has a flat one."""
    floor = min(policy.floor, facts.importance)
    if facts.pinned or facts.tags & policy.protected_tags:
        return Curve(facts.importance, facts.idle_since, 0.0, floor, None, None)
    loss = policy.daily_loss(facts.access_count)
    fades_at = _crossing(facts, loss, floor, policy.fade_threshold)
    archives_at = _crossing(facts, loss, floor, policy.archive_threshold)
    if archives_at is not None:
        archives_at = max(archives_at, facts.idle_since + timedelta(days=FIRST_DAYS))
    if archives_at is not None and facts.imported_at is not None:
        archives_at = max(archives_at, facts.imported_at + timedelta(days=IMPORT_GRACE_DAYS))
    return Curve(facts.importance, facts.idle_since, loss, floor, fades_at, archives_at)


def _crossing(facts: MemoryFacts, loss: float, floor: float, threshold: float) -> datetime | None:
    """When the strength first lies below the threshold."""
    if facts.importance < threshold:
        return facts.idle_since
    if floor >= threshold or threshold <= 0 or loss <= 0:
        return None
    days = math.log(facts.importance / threshold) / loss
    if days > MAX_DAYS:
        return None
    try:
        return facts.idle_since + timedelta(days=days)
    except OverflowError:
        return None
