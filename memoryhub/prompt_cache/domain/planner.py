"""Where to put `cache_control` in a request: at most four markers, each with its reason; nothing else is touched.

The planner respects what the caller marked already and only adds. It marks the end of the tools, the end of the fixed part
of the system prompt (before a clock or an id), the end of the conversation, and one block on the way where the lookback
would not reach the last write. What lies below the model's minimum is left alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import Block, Json, Prompt, positions
from memoryhub.prompt_cache.domain.divergence import common_prefix_length
from memoryhub.prompt_cache.domain.exchange import Exchange
from memoryhub.prompt_cache.domain.pricing import USUAL_READ
from memoryhub.prompt_cache.domain.request_body import is_plain_user_message, read_prompt
from memoryhub.prompt_cache.domain.rulebook import RuleVersion
from memoryhub.prompt_cache.domain.ttl_choice import break_even_reads, hour_pays_above, measure_pauses
from memoryhub.prompt_cache.domain.volatile import find_volatile


def _(sentence: str) -> str:
    """Mark a sentence for translation; the pages translate it where it is shown."""
    return sentence


STATIC_TTL = "1h"  # tools and system are shared by all conversations, so somebody reads them within the hour
TAIL_TTL = "5m"


@dataclass(frozen=True, slots=True)
class PlannedMarker:
    """A marker that the plan adds."""

    path: str
    ttl: str
    why: str
    break_even_reads: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The annotated body and what was added to it."""

    body: Json
    markers: tuple[PlannedMarker, ...]


@dataclass(frozen=True, slots=True)
class _Wish:
    index: int
    ttl: str
    why: str
    rank: int  # lower goes first where four markers are not enough


def plan(
    body: Json,
    *,
    history: Sequence[Exchange] = (),
    rules: RuleVersion = rulebook.LATEST_RULES,
    read_ratio: Fraction = USUAL_READ,
) -> Plan:
    """Return the body with markers where they pay, and why each is there."""
    prompt = read_prompt(body)
    wishes = _wishes(prompt, body, history, rules, read_ratio)
    taken = prompt.effective_markers()
    room = (
        rulebook.MAX_MARKERS - len([block for block in prompt.blocks if block.ttl]) - (prompt.automatic_ttl is not None)
    )
    marked = {index for index, _ in taken}
    chosen = sorted((wish for wish in wishes if wish.index not in marked), key=lambda wish: wish.rank)[: max(0, room)]
    added: list[PlannedMarker] = []
    result = body
    for wish in sorted(chosen, key=lambda wish: wish.index):
        ttl = _legal_ttl(wish, taken)
        result, path = _place(result, prompt.blocks[wish.index], ttl)
        added.append(PlannedMarker(path, ttl, wish.why, break_even_reads(ttl, read_ratio)))
    return Plan(result, tuple(added))


def _wishes(
    prompt: Prompt, body: Json, history: Sequence[Exchange], rules: RuleVersion, read_ratio: Fraction
) -> list[_Wish]:
    minimum = rulebook.minimum_tokens(prompt.params.model) or 0
    tail_ttl = _tail_ttl(history, read_ratio)
    wishes: list[_Wish] = []
    static = _static_end(prompt)
    tools_end = _last_of(prompt, "tools")
    tail = prompt.last_cacheable
    if static is not None:
        wishes.append(_Wish(static, STATIC_TTL, _why_static(prompt.blocks[static]), 0))
    if tools_end is not None and tools_end != static and prompt.blocks[tools_end].can_carry:
        wishes.append(
            _Wish(tools_end, STATIC_TTL, _("End of the tools: they stay cached when the system prompt changes."), 3)
        )
    if tail is not None and prompt.blocks[tail].section == "messages":
        wishes.append(
            _Wish(tail, tail_ttl, _("End of the conversation: the next turn reads everything up to here."), 1)
        )
        bridge = _bridge(prompt, body, history, rules, tail)
        if bridge is not None:
            wishes.append(
                _Wish(
                    bridge,
                    tail_ttl,
                    _("The lookback from the end would not reach the last write; from here it does."),
                    2,
                )
            )
    seen: set[int] = set()
    kept = []
    for wish in wishes:
        tokens = prompt.tokens_through(wish.index, prompt.estimated_tokens)
        if tokens >= minimum and wish.index not in seen:
            seen.add(wish.index)
            kept.append(wish)
    return kept


def _tail_ttl(history: Sequence[Exchange], read_ratio: Fraction) -> str:
    pauses = measure_pauses(history)
    return "1h" if pauses.gap_count and pauses.rebuilt_share > hour_pays_above(read_ratio) else TAIL_TTL


def _why_static(block: Block) -> str:
    if block.section == "tools":
        return _("End of the tools: the same for every conversation.")
    return _("End of the fixed system prompt: the same for every conversation.")


def _last_of(prompt: Prompt, section: str) -> int | None:
    return max((index for index, block in enumerate(prompt.blocks) if block.section == section), default=None)


def _static_end(prompt: Prompt) -> int | None:
    """Return the last block of tools and system before anything that looks like a clock, an id or a counter."""
    end = None
    for index, block in enumerate(prompt.blocks):
        if block.section == "messages":
            break
        text = block.source if isinstance(block.source, str) else str(block.source.get("text") or "")
        if block.section == "system" and find_volatile(text):
            break
        if block.can_carry:
            end = index
    return end


def _bridge(prompt: Prompt, body: Json, history: Sequence[Exchange], rules: RuleVersion, tail: int) -> int | None:
    """Return where the last write lies, if a marker at the tail would look past it."""
    write = _last_write(prompt, history)
    if write is None:
        write = _previous_user_turn(prompt, body)
    if write is None or write >= tail:
        return None
    numbers = positions(prompt.blocks, rules)
    if numbers[tail] - numbers[write] < rules.lookback_positions:
        return None
    reachable = [
        index
        for index in range(write, tail)
        if numbers[index] - numbers[write] < rules.lookback_positions and _can_be_marked(prompt.blocks[index])
    ]
    return reachable[-1] if reachable else None


def _can_be_marked(block: Block) -> bool:
    return block.can_carry and not isinstance(block.source, str)


def _last_write(prompt: Prompt, history: Sequence[Exchange]) -> int | None:
    writes = []
    for item in history:
        if item.prompt and item.markers:
            shared = common_prefix_length(item.prompt.digests, prompt.digests)
            writes += [index for index, _ in item.markers if index < shared]
    return max(writes, default=None)


def _previous_user_turn(prompt: Prompt, body: Json) -> int | None:
    """Return the last block of the user message before the last one: there the previous request ended."""
    messages = body.get("messages") or []
    users = [
        index
        for index, message in enumerate(messages)
        if message.get("role") == "user" and is_plain_user_message(message)
    ]
    earlier = [index for index in users if index < len(messages) - 1]
    if not earlier:
        return None
    return max(
        (index for index, block in enumerate(prompt.blocks) if block.message == earlier[-1] and block.can_carry),
        default=None,
    )


def _legal_ttl(wish: _Wish, taken: Sequence[tuple[int, str]]) -> str:
    """Return the wished TTL, or the one that keeps 1h markers before 5m ones among the caller's own."""
    if any(index > wish.index and ttl == "1h" for index, ttl in taken):
        return "1h"
    if any(index < wish.index and ttl == "5m" for index, ttl in taken):
        return "5m"
    return wish.ttl


# --- Placing ---------------------------------------------------------------------------------------------------------


def _place(body: Json, block: Block, ttl: str) -> tuple[Json, str]:
    """Return a copy of the body with the marker on one block, and the block's path in it.

    A string cannot hold a marker. The end of a conversation that is a string is marked by automatic caching; a system
    prompt becomes the one text block that it stands for.
    """
    control = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
    if block.path == "system":
        return {**body, "system": [{"type": "text", "text": body["system"], "cache_control": control}]}, "system[0]"
    if block.section == "messages" and isinstance(block.source, str):
        return {**body, "cache_control": control}, "cache_control"
    section = list(body[block.section])
    if block.section != "messages":
        index = int(block.path.rsplit("[", 1)[1][:-1])
        section[index] = {**section[index], "cache_control": control}
        return {**body, block.section: section}, block.path
    inner = int(block.path.rsplit("[", 1)[1][:-1])
    message = section[block.message]
    content = list(message["content"])
    content[inner] = {**content[inner], "cache_control": control}
    section[block.message] = {**message, "content": content}
    return {**body, "messages": section}, block.path
