"""`python -m tests.bench.tool_eviction`: tool time saved by each eviction rule on pinned traces, at a tenth of the room.

Two families of traces: `agent` (_agent_traces.py, frozen before any rule was run on them) and `drawn` (_tool_traces.py,
whose parameters were chosen together with the rule). `room` says what endless room would save over LRU: in one session
of the `agent` traces little more than the rule does, for half of the tool time goes to test runs that never repeat.

The goal's LFU is the one that simple caches have, which counts for ever (`lfu_unaged`). The product's own `lfu` ages; it is
the stronger rival, and shown without a goal.

Tried on other seeds of the same traces and not taken: other exponents of cost and size, counting hits by their root or
logarithm, or fading with time, keeping counts of what was evicted, expecting of a new entry what its tool's entries had.
Each gains time by losing hits, or the other way round; hits times the
root of cost over size is the one that stays above LRU in both, everywhere.
"""

from __future__ import annotations

import statistics

from tests.bench import _agent_traces
from tests.bench._tool_simulator import Outcome, replay, working_set_bytes
from tests.bench._tool_traces import Call, hub_trace, session_trace
from tests.bench.throwaway import show

SEEDS = range(1, 9)
SHARE = 0.10
ENDLESS = 10**15


def outcomes(traces: list[list[Call]], policy: str) -> list[Outcome]:
    return [replay(calls, policy, int(working_set_bytes(calls) * SHARE)) for calls in traces]


def main() -> None:
    """Compare GDSF with LRU and LFU: time saved, and the hit ratio, which must not pay for it."""
    for name, traces in (
        ("agent_session", [_agent_traces.session_trace(seed) for seed in _agent_traces.SESSION_SEEDS]),
        ("agent_hub", [_agent_traces.hub_trace(seed) for seed in _agent_traces.SEEDS]),
        ("drawn_session", [session_trace(seed) for seed in SEEDS]),
        ("drawn_hub", [hub_trace(seed) for seed in SEEDS]),
    ):
        found = {policy: outcomes(traces, policy) for policy in ("gdsf", "lru", "lfu", "lfu_unaged")}
        found["endless"] = [replay(calls, "lru", ENDLESS) for calls in traces]
        saved = {policy: statistics.mean(one.saved for one in many) for policy, many in found.items()}
        ratio = {policy: statistics.mean(one.hit_ratio for one in many) for policy, many in found.items()}
        seen = {policy: round(value, 3) for policy, value in saved.items()}
        room = round(saved["endless"] / saved["lru"], 3)
        over_lru = saved["gdsf"] / saved["lru"]
        show(f"tool_time_saved_gdsf_over_lru_{name}", over_lru, "ratio", ">= 1.15", saved=seen, room=room)
        simple = saved["gdsf"] / saved["lfu_unaged"]
        show(f"tool_time_saved_gdsf_over_lfu_{name}", simple, "ratio", ">= 1.15", saved=seen)
        show(f"tool_time_saved_gdsf_over_ageing_lfu_{name}", saved["gdsf"] / saved["lfu"], "ratio", "")
        show(f"tool_hit_ratio_gdsf_over_lru_{name}", ratio["gdsf"] / ratio["lru"], "ratio", ">= 1.0")


if __name__ == "__main__":
    main()
