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
    """Replay calls under a rule; `lfu_unaged` counts for ever, as the simplest caches do.

    A key of the form `call@version` is one entry of the call, as in the hub: another version of it is a miss, and its
    value takes the old one's place.
    """
    rule = POLICIES.get(policy, lambda facts, floor: facts.hits + 1.0)
    outcome = Outcome()
    hits: dict[str, int] = {}
    priority: dict[str, float] = {}
    size: dict[str, int] = {}
    versions: dict[str, str] = {}
    heap: list[tuple[float, str]] = []
    used, floor = 0, 0.0
    for now, call in enumerate(calls):
        outcome.calls += 1
        outcome.total_ms += call.cost_ms
        key, _, version = call.key.partition("@")
        if key in size and versions[key] == version:
            outcome.hits += 1
            outcome.saved_ms += call.cost_ms
            hits[key] += 1
        elif fits(call.size_bytes, capacity_bytes):
            used -= size.pop(key, 0)
            while used + call.size_bytes > capacity_bytes:
                value, victim = heapq.heappop(heap)
                if victim in size and priority[victim] == value:
                    used -= size.pop(victim)
                    floor = value
            hits[key], versions[key] = 0, version
            size[key] = call.size_bytes
            used += call.size_bytes
        else:
            continue
        facts = Facts(hits[key], call.cost_ms, call.size_bytes, float(now))
        priority[key] = rule(facts, floor if policy in ("gdsf", "lfu") else 0.0)
        heapq.heappush(heap, (priority[key], key))
    return outcome


def working_set_bytes(calls: Iterable[Call]) -> int:
    """Return what it takes to hold every call's newest version."""
    return sum({call.key.partition("@")[0]: call.size_bytes for call in calls}.values())
