"""May this result be stored, for how long, and if not, why: one word, the same in the API, the log and on the page."""

from dataclasses import dataclass
from enum import StrEnum

from memoryhub.session_cache.domain.eviction import fits

DEFAULT_TTL_SECONDS = 600.0


class Refusal(StrEnum):
    UNCACHEABLE = "uncacheable"  # no policy declares the tool cacheable, or the value has no stored form
    NEVER_CACHE = "never_cache"  # its policy says no
    TTL_ZERO = "ttl_zero"
    ERROR = "error"
    TOO_LARGE = "too_large"
    STALE_LEASE = "stale_lease"


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """The part of a tool's policy that decides about storing."""

    cacheable: bool
    ttl_seconds: float | None = None
    strategy: str = "hybrid"
    error_ttl_seconds: float = 0.0
    stale_while_revalidate_seconds: float = 0.0
    ttl_jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Either a refusal, or how long the result lives; None lives until it is invalidated or evicted."""

    refusal: Refusal | None = None
    ttl_seconds: float | None = None


def decide(
    rule: PolicyRule | None, *, ttl_seconds: float | None, is_error: bool, size_bytes: int, capacity_bytes: int
) -> Decision:
    """Decide about one result. A TTL of 0 stores nothing; None takes the policy's, then the default."""
    if rule is None:
        return Decision(Refusal.UNCACHEABLE)
    if not rule.cacheable:
        return Decision(Refusal.NEVER_CACHE)
    ttl = _ttl(rule, ttl_seconds)
    if ttl == 0:
        return Decision(Refusal.TTL_ZERO)
    if is_error:
        if rule.error_ttl_seconds == 0:
            return Decision(Refusal.ERROR)
        ttl = rule.error_ttl_seconds if ttl is None else min(ttl, rule.error_ttl_seconds)
    if not fits(size_bytes, capacity_bytes):
        return Decision(Refusal.TOO_LARGE)
    return Decision(ttl_seconds=ttl)


def _ttl(rule: PolicyRule, asked: float | None) -> float | None:
    if asked is not None:
        return asked
    if rule.ttl_seconds is not None:
        return rule.ttl_seconds
    return None if rule.strategy == "manual" else DEFAULT_TTL_SECONDS
