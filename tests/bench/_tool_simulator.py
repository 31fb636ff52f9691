"""Replaying a trace against an eviction rule: the rules are the product's own, the store is a dict."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from memoryhub.session_cache.domain.eviction import POLICIES, Facts, fits
from tests.bench._tool_traces import Call


@dataclass(slots=True)
class Outcome:
    """What a replay saved of all that running every call would have cost."""

    hits: int = 0
    calls: int = 0
    saved_ms: float = 0.0
    total_ms: float = 0.0

    @property
    def hit_ratio(self) -> float:
        return self.hits / self.calls

    @property
    def saved(self) -> float:
        return self.saved_ms / self.total_ms


def replay(calls: Iterable[Call], policy: str, capacity_bytes: int) -> Outcome:
    """Replay calls under a rule; `lfu_unaged` counts for ever, as the simplest caches do."""
    rule = POLICIES.get(policy, lambda facts, floor: facts.hits + 1.0)
    outcome = Outcome()
    hits: dict[str, int] = {}
    priority: dict[str, float] = {}
    size: dict[str, int] = {}
    heap: list[tuple[float, str]] = []
    used, floor = 0, 0.0
    for now, call in enumerate(calls):
        outcome.calls += 1
        outcome.total_ms += call.cost_ms
        known = call.key in size
        if known:
            outcome.hits += 1
            outcome.saved_ms += call.cost_ms
            hits[call.key] += 1
        elif fits(call.size_bytes, capacity_bytes):
            while used + call.size_bytes > capacity_bytes:
                value, victim = heapq.heappop(heap)
                if victim in size and priority[victim] == value:
                    used -= size.pop(victim)
                    floor = value
            hits[call.key] = 0
            size[call.key] = call.size_bytes
            used += call.size_bytes
        else:
            continue
        facts = Facts(hits[call.key], call.cost_ms, call.size_bytes, float(now))
        priority[call.key] = rule(facts, floor if policy in ("gdsf", "lfu") else 0.0)
        heapq.heappush(heap, (priority[call.key], call.key))
    return outcome


def working_set_bytes(calls: Iterable[Call]) -> int:
    """Return what it takes to hold everything."""
    return sum({call.key: call.size_bytes for call in calls}.values())
