"""Replaying a session's requests under other caching plans: what each would have read, written and cost.

`Shape` is all that the cache sees of a request: the hash of the prefix at each block, the tokens up to it, its position, and
the markers it really carried. Shapes come from bodies, from stored fingerprints, or, where only usage is known, from the size
of the cached prefix alone. Replaying `actual` must reproduce the billed counters; how far it does is the calibration error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import Prompt, positions
from memoryhub.prompt_cache.domain.coldness import SOONEST_FIRST_BYTE_SECONDS
from memoryhub.prompt_cache.domain.exchange import Tariff, cached_tokens
from memoryhub.prompt_cache.domain.pricing import USUAL_READ, Modifiers, Tokens
from memoryhub.prompt_cache.domain.ttl_choice import KEEPALIVE_SECONDS, keepalive_limit_seconds

PLANS = ("none", "auto-5m", "1h", "mixed", "keepalive", "actual")
Marker = tuple[int, str]
NO_MODIFIERS = Modifiers()
FindTariff = Callable[["Shape", int], Tariff | None]


@dataclass(frozen=True, slots=True)
class Shape:
    """One request as the cache sees it."""

    started: float  # seconds; only differences matter
    readable: float  # when its first byte came: what it wrote can be read from then on
    prefix_hashes: tuple[bytes, ...]
    cumulative_tokens: tuple[int, ...]
    positions: tuple[int, ...]
    can_carry: tuple[bool, ...]
    tools_end: int | None
    system_end: int | None
    markers: tuple[Marker, ...]
    total_tokens: int
    output_tokens: int
    minimum_tokens: int
    lookback_positions: int
    model: str
    at: datetime
    billed: Tokens | None = None
    modifiers: Modifiers = NO_MODIFIERS
    chain: str = ""

    @property
    def last_cacheable(self) -> int | None:
        return next((index for index in range(len(self.can_carry) - 1, -1, -1) if self.can_carry[index]), None)


@dataclass(frozen=True, slots=True)
class Replay:
    """What one plan gives over a session."""

    plan: str
    bills: tuple[Tokens, ...]
    pings: int = 0
    cost_pico: int | None = None  # None where a model has no price

    @property
    def hit_rate(self) -> float | None:
        prompt = sum(bill.prompt for bill in self.bills)
        return sum(bill.cache_read for bill in self.bills) / prompt if prompt else None


@dataclass(frozen=True, slots=True)
class Simulation:
    """All plans side by side, each with its distance from the cheapest."""

    replays: tuple[Replay, ...]
    calibration_error: float | None

    def regret_pico(self, replay: Replay) -> int | None:
        costs = [other.cost_pico for other in self.replays if other.cost_pico is not None]
        return None if replay.cost_pico is None or not costs else replay.cost_pico - min(costs)


def shape_of(
    prompt: Prompt,
    *,
    started_at: datetime,
    first_byte_at: datetime | None = None,
    billed: Tokens | None = None,
    model: str = "",
    output_tokens: int = 0,
    modifiers: Modifiers = NO_MODIFIERS,
    chain: str = "",
    known: Mapping[bytes, int] | None = None,
) -> Shape:
    """Return a request's shape; `known` has the exact tokens of prefixes, by hash (known_ends)."""
    known = known_ends([(prompt, billed)]) if known is None else known
    rules = rulebook.rules_at(started_at)
    total = billed.prompt if billed and billed.prompt else prompt.estimated_tokens
    sections = [block.section for block in prompt.blocks]
    return Shape(
        started=started_at.timestamp(),
        readable=_readable(started_at, first_byte_at),
        prefix_hashes=tuple(prompt.prefix_hashes),
        cumulative_tokens=_cumulative_tokens(prompt, total, known),
        positions=tuple(positions(prompt.blocks, rules)),
        can_carry=tuple(block.can_carry for block in prompt.blocks),
        tools_end=_last_index(sections, "tools"),
        system_end=_last_index(sections, "system"),
        markers=tuple(prompt.effective_markers()),
        total_tokens=total,
        output_tokens=billed.output if billed else output_tokens,
        minimum_tokens=rulebook.minimum_tokens(model or prompt.params.model) or 0,
        lookback_positions=rules.lookback_positions,
        model=model or prompt.params.model,
        at=started_at,
        billed=billed,
        modifiers=modifiers,
        chain=chain,
    )


def _readable(started_at: datetime, first_byte_at: datetime | None) -> float:
    """Return when the entry can be read; no response begins at once, even where nobody noted its first byte."""
    return first_byte_at.timestamp() if first_byte_at else started_at.timestamp() + SOONEST_FIRST_BYTE_SECONDS


def known_ends(requests: Iterable[tuple[Prompt, Tokens | None]]) -> dict[bytes, int]:
    """Return the exact tokens of every prefix that a bill names: what was read and written ends at the last marker."""
    known: dict[bytes, int] = {}
    for prompt, billed in requests:
        markers = prompt.effective_markers()
        if billed is not None and markers and cached_tokens(billed):
            known[prompt.prefix_hashes[markers[-1][0]]] = cached_tokens(billed)
    return known


def _cumulative_tokens(prompt: Prompt, total: int, known: Mapping[bytes, int]) -> tuple[int, ...]:
    """Return tokens up to each block: exact where a bill names the prefix, in between apportioned by byte length."""
    weights = prompt.cumulative_weights
    last = len(weights) - 1
    anchors = [(-1, 0)]
    for index, prefix in enumerate(prompt.prefix_hashes):
        tokens = known.get(prefix)
        if tokens is not None and index < last and anchors[-1][1] <= tokens <= total:
            anchors.append((index, tokens))
    anchors.append((last, total))
    cumulative: list[int] = []
    for (start, before), (end, after) in pairwise(anchors):
        base = weights[start] if start >= 0 else 0
        span = max(1, weights[end] - base) if end >= 0 else 1
        cumulative += [
            before + (after - before) * (weights[index] - base) // span for index in range(start + 1, end + 1)
        ]
    return tuple(cumulative)


def _last_index(sections: Sequence[str], name: str) -> int | None:
    return max((index for index, section in enumerate(sections) if section == name), default=None)


# --- One request -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Entry:
    ttl: str
    touched: float
    readable: float


Cache = dict[bytes, _Entry]


def bill(shape: Shape, markers: Sequence[Marker], cache: Cache) -> Tokens:
    """Return the counters of one request under these markers, and leave in the cache what it reads and writes.

    1. markers below the model's minimum are silently dropped
    2. the highest readable entry within reach of a marker is the hit; the later marker looks first
    3. the hit is refreshed; every marker beyond it writes
    4. read A; 1h write B - A; 5m write C - B; the rest is plain input
    """
    effective = [marker for marker in markers if shape.cumulative_tokens[marker[0]] >= shape.minimum_tokens]
    if not effective:
        return Tokens(input=shape.total_tokens, output=shape.output_tokens)
    hit = _find_hit(shape, effective, cache)
    tokens = shape.cumulative_tokens
    a = tokens[hit] if hit >= 0 else 0
    b = max((tokens[index] for index, ttl in effective if ttl == "1h" and index > hit), default=a)
    c = max(tokens[effective[-1][0]], a)
    if hit >= 0:
        cache[shape.prefix_hashes[hit]].touched = shape.started
    for index, ttl in effective:
        _touch_or_write(shape, index, ttl, hit, cache)
    return Tokens(shape.total_tokens - c, c - b, b - a, a, shape.output_tokens)


def _touch_or_write(shape: Shape, index: int, ttl: str, hit: int, cache: Cache) -> None:
    key = shape.prefix_hashes[index]
    entry = cache.get(key)
    if index > hit:
        readable = shape.readable
        if entry is not None and _alive(entry, shape.started):
            readable = min(readable, entry.readable)
        cache[key] = _Entry(ttl, shape.started, readable)
    elif entry is not None and _alive(entry, shape.started):
        entry.touched = shape.started  # a read goes through it, so it is refreshed as well


def _alive(entry: _Entry, now: float) -> bool:
    return now - entry.touched <= rulebook.TTL_SECONDS[entry.ttl]


def _find_hit(shape: Shape, markers: Sequence[Marker], cache: Cache) -> int:
    for end, _ in reversed(markers):
        index = end
        while index >= 0 and shape.positions[end] - shape.positions[index] < shape.lookback_positions:
            entry = cache.get(shape.prefix_hashes[index])
            if entry is not None and _alive(entry, shape.started) and shape.started >= entry.readable:
                return index
            index -= 1
    return -1


def plan_markers(plan: str, shape: Shape) -> list[Marker]:
    """Return the markers that a plan puts on a request."""
    last = shape.last_cacheable
    if plan == "actual":
        return list(shape.markers)
    if plan == "none" or last is None:
        return []
    if plan == "mixed":
        ends = {
            index: "1h" for index in (shape.tools_end, shape.system_end) if index is not None and shape.can_carry[index]
        }
        ends.setdefault(last, "5m")
        return sorted(ends.items())
    return [(last, "1h" if plan == "1h" else "5m")]


# --- A session -------------------------------------------------------------------------------------------------------


def simulate(shapes: Sequence[Shape], plans: Sequence[str], find_tariff: FindTariff) -> Simulation:
    """Replay the requests, in order of start, under each plan."""
    ordered = sorted(shapes, key=lambda shape: shape.started)
    replays = tuple(replay(ordered, plan, find_tariff) for plan in plans)
    return Simulation(replays, calibration_error(ordered))


def replay(shapes: Sequence[Shape], plan: str, find_tariff: FindTariff) -> Replay:
    """Return the bills of one plan over requests in order of start."""
    cache: Cache = {}
    bills: list[Tokens] = []
    cost: int | None = 0
    pings = 0
    earlier: dict[str, Shape] = {}
    for shape in shapes:
        if plan == "keepalive" and shape.chain in earlier:
            count, price = keep_alive(earlier[shape.chain], shape, cache, find_tariff)
            pings += count
            cost = None if cost is None or price is None else cost + price
        counters = bill(shape, plan_markers(plan, shape), cache)
        tariff = find_tariff(shape, counters.prompt)
        cost = None if cost is None or tariff is None else cost + tariff.price(counters)
        bills.append(counters)
        earlier[shape.chain] = shape
    return Replay(plan, tuple(bills), pings, cost)


def keep_alive(before: Shape, after: Shape, cache: Cache, find_tariff: FindTariff) -> tuple[int, int | None]:
    """Ping the last prefix through a pause, up to the limit at which a rebuild is cheaper; return count and price."""
    last = before.last_cacheable
    gap = after.started - before.started
    if last is None or gap <= KEEPALIVE_SECONDS or before.cumulative_tokens[last] < before.minimum_tokens:
        return 0, 0
    tariff = find_tariff(before, before.total_tokens)
    ratio = tariff.rates.read_ratio if tariff else USUAL_READ
    count = ping_count(gap, ratio)
    entry = cache.get(before.prefix_hashes[last])
    if entry is not None and count:
        entry.touched = max(entry.touched, before.started + count * KEEPALIVE_SECONDS)
    ping = Tokens(cache_read=before.cumulative_tokens[last])
    return count, None if tariff is None else count * tariff.price(ping)


def ping_count(gap_seconds: float, read_ratio: Fraction) -> int:
    """Return how many pings a pause takes; nobody knows its length, so they end only at the limit."""
    paid = min(Fraction(gap_seconds), keepalive_limit_seconds(read_ratio))
    return max(0, -(-paid.numerator // (paid.denominator * KEEPALIVE_SECONDS)) - 1)


def calibration_error(shapes: Sequence[Shape]) -> float | None:
    """Return how far replaying the real markers is from the bill: the share of prompt tokens in the wrong counter."""
    billed = [shape for shape in shapes if shape.billed is not None]
    total = sum(shape.billed.prompt for shape in billed if shape.billed)
    if not total:
        return None
    cache: Cache = {}
    wrong = 0
    for shape in shapes:
        counters = bill(shape, shape.markers, cache)
        if shape.billed is not None:
            wrong += _moved_tokens(counters, shape.billed)
    return wrong / total


def _moved_tokens(one: Tokens, other: Tokens) -> int:
    """Return how many tokens one bill has in another counter than the other."""
    pairs = (
        (one.input, other.input),
        (one.cache_write_5m, other.cache_write_5m),
        (one.cache_write_1h, other.cache_write_1h),
        (one.cache_read, other.cache_read),
    )
    return max(sum(max(0, a - b) for a, b in pairs), sum(max(0, b - a) for a, b in pairs))


# --- Without bodies --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UsageOnly:
    """A request of which nobody kept the body."""

    billed: Tokens
    started_at: datetime
    model: str
    first_byte_at: datetime | None = None
    modifiers: Modifiers = NO_MODIFIERS


def usage_shapes(requests: Sequence[UsageOnly], chain: str = "") -> list[Shape]:
    """Return shapes for a chain of requests, in order of start, of which only usage and time are known.

    Two neighbours are taken to share the shorter of their prefixes: a hit reads min(previous, current) and writes the
    rest. Four positions stand for a request: what the previous one cached, all that it sent, what this one cached, and
    all that this one sends.
    """
    shapes = []
    before: UsageOnly | None = None
    for step, request in enumerate(requests):
        shapes.append(_usage_shape(before, request, chain, step))
        before = request
    return shapes


def _usage_shape(before: UsageOnly | None, request: UsageOnly, chain: str, step: int) -> Shape:
    total, cached = request.billed.prompt, cached_tokens(request.billed)
    old_cached = min(cached_tokens(before.billed), cached or total) if before else 0
    old_total = min(before.billed.prompt, total) if before else 0
    ends = [
        (old_cached, f"{chain}/{step - 1}/cached/{request.model}"),
        (old_total, f"{chain}/{step - 1}/all/{request.model}"),
        (cached or total, f"{chain}/{step}/cached/{request.model}"),
        (total, f"{chain}/{step}/all/{request.model}"),
    ]
    own = ends[2]
    ends.sort(key=lambda end: end[0])
    return Shape(
        started=request.started_at.timestamp(),
        readable=_readable(request.started_at, request.first_byte_at),
        prefix_hashes=tuple(key.encode() for _, key in ends),
        cumulative_tokens=tuple(tokens for tokens, _ in ends),
        positions=(0, 1, 2, 3),
        can_carry=(True,) * 4,
        tools_end=None,
        system_end=None,
        markers=((ends.index(own), "1h" if request.billed.cache_write_1h else "5m"),) if cached else (),
        total_tokens=total,
        output_tokens=request.billed.output,
        minimum_tokens=1,  # what was too short to be cached shows in the bill
        lookback_positions=rulebook.rules_at(request.started_at).lookback_positions,
        model=request.model,
        at=request.started_at,
        billed=request.billed,
        modifiers=request.modifiers,
        chain=chain,
    )
