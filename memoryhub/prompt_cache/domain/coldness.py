"""Why an equal prefix was not read: too short, unmarked, a tail that varies, out of reach, expired, too early."""

from collections.abc import Sequence
from itertools import pairwise

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import positions
from memoryhub.prompt_cache.domain.divergence import Divergence, common_prefix_length
from memoryhub.prompt_cache.domain.exchange import Exchange, cached_tokens

# Two requests closer than this cannot have waited for each other: no response begins sooner.
SOONEST_FIRST_BYTE_SECONDS = 0.5
VARYING_REQUESTS = 2  # so many replaced tails in a row make a habit
# Without bodies, a prompt that lost a third of its tokens was compacted or rewritten.
_SHRUNK_NUMERATOR, _SHRUNK_DENOMINATOR = 2, 3


def why_cold(previous: Exchange, current: Exchange, history: Sequence[Exchange]) -> Divergence | None:
    """Return the first of the reasons that applies, in the order in which they would be checked by hand."""
    return (
        why_nothing_cached(previous, current)
        or _varying_tail(previous, current, history)
        or _lookback_exceeded(previous, current)
        or _ttl_expired(previous, current)
        or _concurrent_start(previous, current)
    )


def why_nothing_cached(previous: Exchange, current: Exchange) -> Divergence | None:
    """Return `below_minimum` or `no_marker` where this request neither read nor wrote the cache."""
    prompt, tokens = current.prompt, current.tokens
    if prompt is None or not prompt.blocks or tokens is None or cached_tokens(tokens):
        return None
    total = tokens.prompt or prompt.estimated_tokens
    minimum = rulebook.minimum_tokens(prompt.params.model)
    markers = prompt.effective_markers()
    marked = markers[-1][0] if markers else prompt.last_cacheable
    if marked is None:
        return None
    path = prompt.blocks[marked].path
    if minimum is not None and prompt.tokens_through(marked, total) < minimum:
        was_cached = previous.tokens is not None and cached_tokens(previous.tokens) > 0
        return Divergence("below_minimum", path, detail="") if markers or was_cached else None
    return None if markers else Divergence("no_marker", path, detail="")


def _varying_tail(previous: Exchange, current: Exchange, history: Sequence[Exchange]) -> Divergence | None:
    """Return `varying_tail` where earlier requests too wrote at a block that the next one replaced."""
    chain = [item for item in (*history, previous, current) if item.prompt]
    if current.prompt is None or len(chain) <= VARYING_REQUESTS:
        return None
    replaced = 0
    for old, new in pairwise(chain):
        old_digests = old.prompt.digests if old.prompt else []
        new_digests = new.prompt.digests if new.prompt else []
        replaced = replaced + 1 if common_prefix_length(old_digests, new_digests) == old.last_marked else 0
    if replaced < VARYING_REQUESTS:
        return None
    return Divergence("varying_tail", current.prompt.blocks[current.last_marked].path)


def _lookback_exceeded(previous: Exchange, current: Exchange) -> Divergence | None:
    prompt, write = current.prompt, previous.last_marked
    if prompt is None or previous.prompt is None or not 0 <= write < len(prompt.blocks):
        return None
    rules = rulebook.rules_at(current.started_at)
    numbers = positions(prompt.blocks, rules)
    ends = [index for index, _ in current.markers] or [current.last_marked]
    behind = [end for end in ends if end >= write]
    if not behind or any(numbers[end] - numbers[write] < rules.lookback_positions for end in behind):
        return None
    return Divergence("lookback_exceeded", prompt.blocks[behind[-1]].path, detail="")


def _ttl_expired(previous: Exchange, current: Exchange) -> Divergence | None:
    gap = _gap_seconds(previous, current)
    expired = [index for index, ttl in written_ttls(previous) if gap is not None and gap > rulebook.TTL_SECONDS[ttl]]
    if not expired:
        return None
    path = previous.prompt.blocks[expired[-1]].path if previous.prompt and expired[-1] >= 0 else ""
    return Divergence("ttl_expired", path, detail="")


def written_ttls(exchange: Exchange) -> list[tuple[int, str]]:
    """Return (block, ttl) of what the request keeps alive; without markers in sight, what its bill says."""
    if exchange.markers:
        return exchange.markers
    tokens = exchange.tokens
    only_1h = tokens is not None and tokens.cache_write_1h > 0 and tokens.cache_write_5m == 0
    return [(exchange.last_marked, "1h" if only_1h else "5m")]


def _concurrent_start(previous: Exchange, current: Exchange) -> Divergence | None:
    start, gap = current.started_at, _gap_seconds(previous, current)
    if start is None or gap is None:
        return None
    readable = previous.first_byte_at or previous.ended_at
    early = start < readable if readable else gap < SOONEST_FIRST_BYTE_SECONDS
    return Divergence("concurrent_start", "", detail="") if early else None


def _gap_seconds(previous: Exchange, current: Exchange) -> float | None:
    if current.started_at is None or previous.started_at is None:
        return None
    return (current.started_at - previous.started_at).total_seconds()


def suspect(previous: Exchange, current: Exchange) -> Divergence | None:
    """Return a parameter that may have changed the prompt, where nothing certain explains a low read."""
    if previous.prompt is None or current.prompt is None:
        return _shrunk(previous, current)
    old, new = previous.prompt.params, current.prompt.params
    if old.context_management != new.context_management:
        return Divergence("messages_changed", "context_management")
    if current.prompt.last_message > previous.prompt.last_message and current.prompt.drops_thinking:
        path = next((block.path for block in current.prompt.blocks if block.section == "messages"), "messages")
        return Divergence("thinking_stripped", path, "removed")
    if old.output_format != new.output_format:
        return Divergence("unknown", "output_config.format")
    if old.betas != new.betas:
        return Divergence("unknown", "betas")
    return None


def _shrunk(previous: Exchange, current: Exchange) -> Divergence | None:
    if previous.tokens is None or current.tokens is None:
        return None
    if current.tokens.prompt * _SHRUNK_DENOMINATOR < previous.tokens.prompt * _SHRUNK_NUMERATOR:
        return Divergence("messages_changed", "messages", "removed")
    return None
