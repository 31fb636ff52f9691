"""Why costs changed from one period to the next: more requests, larger or dearer ones, or another use of the cache.

The three effects add up to the difference exactly. With n requests, u their cost without cache and c their cost:
requests = (n' - n) c / n, size = (u' - n' u / n) c / u, caching = the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Period:
    """The sums of one period; money in pico-USD."""

    requests: int
    nocache_pico: int
    cost_pico: int


@dataclass(frozen=True, slots=True)
class CostChange:
    """What each effect adds to the cost, in pico-USD; negative where it saves."""

    requests_pico: int  # more or fewer requests, each as before
    size_pico: int  # larger prompts, longer answers, dearer models
    caching_pico: int  # another share read from the cache, or written to it

    @property
    def total_pico(self) -> int:
        return self.requests_pico + self.size_pico + self.caching_pico


def explain_change(now: Period, before: Period) -> CostChange | None:
    """Split the difference into its effects; None where one of the periods has nothing to compare."""
    if not (before.requests and before.nocache_pico and now.requests):
        return None
    requests = Fraction((now.requests - before.requests) * before.cost_pico, before.requests)
    work = Fraction(now.requests * before.nocache_pico, before.requests)  # this many requests as they were before
    size = (now.nocache_pico - work) * Fraction(before.cost_pico, before.nocache_pico)
    whole = CostChange(round(requests), round(size), 0)
    return CostChange(
        whole.requests_pico, whole.size_pico, now.cost_pico - before.cost_pico - whole.requests_pico - whole.size_pico
    )
