"""Tool calls of coding agents, derived from how such sessions go; written and frozen before any rule was run on them.

A project has files, folders, search patterns, pages and test commands, each with its own cost and size (log-normal: most
are small and quick, a few are large and slow) and its own popularity (Zipf). A session goes through phases: it explores,
then edits and tests in turns, then looks things over. Each phase has its own mix of tools and its own order of what is
popular; a part of the calls goes to what every phase needs. An edit makes a new version of a file: what was stored of the
old one, and of test runs and searches before it, is never asked for again.

The parameters below are part of the benchmark: a rule that misses its goal is changed, not they. How many sessions are
drawn is a matter of precision: a few long test runs make most of one session's savings, and over eight sessions the mean
ratio to LRU lies anywhere between 1.09 and 1.17 (95 %, bootstrap); over sixty-four it is known to two hundredths.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field

from tests.bench._tool_traces import Call

SEEDS = tuple(range(101, 109))
SESSION_SEEDS = tuple(range(101, 165))
# tool -> (median cost in ms, spread of its logarithm, median size in bytes, spread of its logarithm, largest size)
TOOLS = {
    "read_file": (3.0, 0.5, 4_500, 1.1, 250_000),  # a source file: some hundred lines
    "list_directory": (4.0, 0.4, 900, 0.8, 20_000),
    "grep": (140.0, 0.9, 2_500, 1.2, 60_000),  # over a repository of middle size
    "web_fetch": (850.0, 0.7, 14_000, 0.9, 120_000),  # a page as text
    "web_search": (1_100.0, 0.4, 4_000, 0.4, 15_000),
    "run_tests": (7_000.0, 1.0, 3_500, 1.0, 80_000),
    "query": (180.0, 1.2, 2_000, 1.4, 150_000),  # a database or an internal service
}
POPULATION = {  # how many different things of each kind a project has to offer
    "read_file": 400, "list_directory": 60, "grep": 150, "web_fetch": 120, "web_search": 100, "run_tests": 25, "query": 90,
}  # fmt: skip
PHASES = (  # (share of the session's calls, share of edits among the calls, mix of tools)
    (0.30, 0.00, {"read_file": 45, "list_directory": 14, "grep": 20, "web_search": 8, "web_fetch": 8, "query": 5}),
    (0.50, 0.12, {"read_file": 48, "list_directory": 5, "grep": 13, "web_search": 3, "web_fetch": 5, "run_tests": 18,
                  "query": 8}),
    (0.20, 0.02, {"read_file": 50, "list_directory": 8, "grep": 18, "run_tests": 14, "query": 10}),
)  # fmt: skip
ZIPF = 1.0
COMMON_SHARE = 0.25  # of the calls: what every phase asks for, by the project's own order of popularity
SESSION_CALLS = 1_500
HUB_SESSIONS, SESSIONS_A_PROJECT = 12, 4
BURST = 8  # calls of one session in a row, at the most, where several run at once


@dataclass
class Project:
    """What there is to ask for, and how often each thing has been changed."""

    seed: int
    things: dict[str, list[Call]] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    edits: int = 0

    def __post_init__(self) -> None:
        dice = random.Random(f"project {self.seed}")
        for tool, count in POPULATION.items():
            self.things[tool] = [_thing(dice, f"{self.seed}/{tool}/{number}", tool) for number in range(count)]

    def call(self, tool: str, thing: Call) -> Call:
        """Return the call as it is now: a test run sees every edit, a search some of them, a read its own file's."""
        if tool == "read_file":
            version = self.versions.get(thing.key, 0)
        elif tool == "run_tests":
            version = self.edits
        elif tool == "grep":
            version = self.edits // 4  # one edit in four touches what a search shows
        else:
            version = 0
        return Call(f"{thing.key}@{version}", thing.cost_ms, thing.size_bytes)

    def edit(self, file: Call) -> None:
        self.versions[file.key] = self.versions.get(file.key, 0) + 1
        self.edits += 1


def _thing(dice: random.Random, key: str, tool: str) -> Call:
    cost, cost_spread, size, size_spread, largest = TOOLS[tool]
    cost_ms = dice.lognormvariate(math.log(cost), cost_spread)
    return Call(key, cost_ms, max(40, min(largest, int(dice.lognormvariate(math.log(size), size_spread)))))


def _weights(count: int) -> list[float]:
    return list(itertools.accumulate(1 / (rank + 1) ** ZIPF for rank in range(count)))


_WEIGHTS = {tool: _weights(count) for tool, count in POPULATION.items()}


def _walk(project: Project, dice: random.Random) -> itertools.chain[Call]:
    return itertools.chain.from_iterable(_phase(project, dice, *phase) for phase in PHASES)


def _phase(project: Project, dice: random.Random, share: float, edits: float, mix: dict[str, int]):  # type: ignore[no-untyped-def]
    own = {tool: dice.sample(things, len(things)) for tool, things in project.things.items()}
    for _ in range(int(SESSION_CALLS * share)):
        tool = dice.choices(list(mix), list(mix.values()))[0]
        order = project.things[tool] if dice.random() < COMMON_SHARE else own[tool]
        thing = dice.choices(order, cum_weights=_WEIGHTS[tool])[0]
        yield project.call(tool, thing)
        if dice.random() < edits:
            project.edit(dice.choices(own["read_file"], cum_weights=_WEIGHTS["read_file"])[0])


def session_trace(seed: int) -> list[Call]:
    """Return the calls of one session that has its project to itself."""
    return list(_walk(Project(seed), random.Random(f"session {seed}")))


def hub_trace(seed: int) -> list[Call]:
    """Return the calls of twelve sessions on three projects, in bursts; they begin one after another."""
    dice = random.Random(f"hub {seed}")
    projects = [Project(seed * 1000 + number) for number in range(HUB_SESSIONS // SESSIONS_A_PROJECT)]
    waiting = [
        _walk(projects[number // SESSIONS_A_PROJECT], random.Random(f"session {seed} {number}"))
        for number in dice.sample(range(HUB_SESSIONS), HUB_SESSIONS)
    ]
    running = [waiting.pop()]
    calls: list[Call] = []
    while running:
        if waiting and dice.random() < 0.01:
            running.append(waiting.pop())
        chosen = dice.choice(running)
        burst = list(itertools.islice(chosen, dice.randint(1, BURST)))
        calls += burst
        if not burst:
            running.remove(chosen)
            if not running and waiting:
                running.append(waiting.pop())
    return calls
