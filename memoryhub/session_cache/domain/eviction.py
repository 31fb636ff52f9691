"""Which entries go when there is no room: the one with the lowest priority, and every rule ages.

GDSF with square-root cost: an entry is worth keeping that was hit often, took long to compute and is small. `floor` is
the priority of the last evicted entry of that space: new and freshly hit entries start above it, so what was popular
long ago sinks by itself. One number per entry, in an indexed column: evicting is a walk along an index.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

SESSION_CAPACITY_BYTES = 50 * 1024 * 1024
LARGEST_SHARE = 0.2  # of the capacity: one entry that needs more would push everything else out
DEFAULT_COST_MS = 10.0  # where neither the call nor the tool's history says how long it took
ENTRY_OVERHEAD_BYTES = 64  # a two-byte answer still takes a row: keeps tiny entries from priorities without bounds


@dataclass(frozen=True, slots=True)
class Facts:
    """What a rule may look at."""

    hits: int
    cost_ms: float
    size_bytes: int
    used_at: float  # seconds since the epoch


def gdsf(facts: Facts, floor: float) -> float:
    """Frequency x sqrt(cost) / size, above the floor."""
    cost = math.sqrt(max(facts.cost_ms, 0.001))
    return floor + (facts.hits + 1) * cost / (facts.size_bytes + ENTRY_OVERHEAD_BYTES)


def lru(facts: Facts, floor: float) -> float:
    """The time of the last use."""
    return facts.used_at


def lfu(facts: Facts, floor: float) -> float:
    """Frequency above the floor, so that a new hot set overtakes an old one."""
    return floor + facts.hits + 1


POLICIES: dict[str, Callable[[Facts, float], float]] = {"gdsf": gdsf, "lru": lru, "lfu": lfu}
DEFAULT_POLICY = "gdsf"


def fits(size_bytes: int, capacity_bytes: int) -> bool:
    """Tell whether an entry may be stored at all; it is refused before anything is evicted."""
    return size_bytes <= capacity_bytes * LARGEST_SHARE


def moving_average(average: float | None, sample: float) -> float:
    """Return a tool's cost after one more call; the last ten or so count."""
    return sample if average is None else average + (sample - average) * 0.1
