"""Tool calls of agents, made up but pinned: the same seed gives the same trace on every machine.

An agent reads files, again and again those of its current task, runs searches and slow queries, and moves on to the next
task; a few files are everybody's. A call has a key, a cost in milliseconds and a size in bytes.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

KINDS = {  # name -> (share of calls, cost in ms: low and high, size in bytes: low and high)
    "read_file": (0.50, (2, 15), (300, 60_000)),
    "list_directory": (0.12, (2, 10), (200, 4_000)),
    "grep": (0.14, (40, 900), (200, 30_000)),
    "web_search": (0.12, (400, 4_000), (3_000, 25_000)),
    "query": (0.08, (50, 4_000), (100, 60_000)),
    "build": (0.04, (1_000, 20_000), (500, 20_000)),
}


@dataclass(frozen=True, slots=True)
class Call:
    key: str
    cost_ms: float
    size_bytes: int


def session_trace(seed: int, *, tasks: int = 12, calls_a_task: int = 120) -> list[Call]:
    """Return one session's calls: tasks with their own working set, common files, and some old ones looked at again."""
    dice = random.Random(seed)
    calls: list[Call] = []
    common = [_thing(dice, f"common-{i}") for i in range(30)]
    past: list[Call] = []
    for task in range(tasks):
        own = [_thing(dice, f"{seed}-{task}-{i}") for i in range(dice.randint(25, 60))]
        weights = [1 / (i + 1) ** 0.8 for i in range(len(own))]
        for _ in range(calls_a_task):
            where = dice.random()
            if where < 0.68:
                calls.append(dice.choices(own, weights)[0])
            elif where < 0.86 or not past:
                calls.append(dice.choice(common))
            else:
                calls.append(dice.choice(past))
        past.extend(own)
    return calls


def hub_trace(seed: int, *, sessions: int = 12) -> list[Call]:
    """Return the calls of a dozen sessions that share a project, interleaved."""
    dice = random.Random(seed)
    running = [iter(session_trace(seed * 100 + n // 3, tasks=6)) for n in range(sessions)]
    calls: list[Call] = []
    while running:
        chosen = dice.choice(running)
        for _ in range(dice.randint(1, 6)):
            call = next(chosen, None)
            if call is None:
                running.remove(chosen)
                break
            calls.append(call)
    return calls


def _thing(dice: random.Random, name: str) -> Call:
    kinds = list(KINDS)
    kind = dice.choices(kinds, [KINDS[kind][0] for kind in kinds])[0]
    _, cost, size = KINDS[kind]
    return Call(f"{kind}:{name}", _between(dice, *cost), int(_between(dice, *size)))


def _between(dice: random.Random, low: float, high: float) -> float:
    """Return a number whose logarithm is spread evenly: most are small, a few are large."""
    return low * (high / low) ** dice.random()
