"""`python -m tests.bench.tool_eviction`: tool time saved by each eviction rule on pinned traces, at a tenth of the room."""

from __future__ import annotations

import statistics

from tests.bench._tool_simulator import Outcome, replay, working_set_bytes
from tests.bench._tool_traces import Call, hub_trace, session_trace
from tests.bench.throwaway import show

SEEDS = range(1, 9)
SHARE = 0.10


def outcomes(traces: list[list[Call]], policy: str) -> list[Outcome]:
    return [replay(calls, policy, int(working_set_bytes(calls) * SHARE)) for calls in traces]


def main() -> None:
    """Compare GDSF with LRU and LFU: time saved, and the hit ratio, which must not pay for it."""
    for name, traces in (
        ("session", [session_trace(seed) for seed in SEEDS]),
        ("hub", [hub_trace(seed) for seed in SEEDS]),
    ):
        found = {policy: outcomes(traces, policy) for policy in ("gdsf", "lru", "lfu", "lfu_unaged")}
        saved = {policy: statistics.mean(one.saved for one in many) for policy, many in found.items()}
        ratio = {policy: statistics.mean(one.hit_ratio for one in many) for policy, many in found.items()}
        seen = {policy: round(value, 3) for policy, value in saved.items()}
        show(f"tool_time_saved_gdsf_over_lru_{name}", saved["gdsf"] / saved["lru"], "ratio", ">= 1.15", saved=seen)
        aged = saved["lfu"]
        show(f"tool_time_saved_gdsf_over_lfu_{name}", saved["gdsf"] / aged, "ratio", ">= 1.15", saved=seen)
        show(f"tool_hit_ratio_gdsf_over_lru_{name}", ratio["gdsf"] / ratio["lru"], "ratio", ">= 1.0")


if __name__ == "__main__":
    main()
