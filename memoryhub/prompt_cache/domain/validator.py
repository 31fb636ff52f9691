"""What the provider would reject, silently not cache, or bill for nothing: told before the request is sent.

Errors are rules that answer 400. Warnings are requests that are legal and will not be cached as meant. Advice needs the
session's earlier requests. Each check is one function from a case to its findings; CHECKS lists them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import THINKING_TYPES, Block, Json, Prompt, positions
from memoryhub.prompt_cache.domain.coldness import VARYING_REQUESTS
from memoryhub.prompt_cache.domain.divergence import common_prefix_length
from memoryhub.prompt_cache.domain.exchange import Exchange
from memoryhub.prompt_cache.domain.pricing import USUAL_READ
from memoryhub.prompt_cache.domain.request_body import clears_itself, read_prompt, read_ttl
from memoryhub.prompt_cache.domain.rulebook import RuleVersion
from memoryhub.prompt_cache.domain.ttl_choice import hour_pays_above, measure_pauses
from memoryhub.prompt_cache.domain.volatile import excerpt, find_volatile

REJECTED = 400
_NESTING_FIELDS = ("content", "citations", "source")  # where a block holds smaller blocks
GAPS_FOR_LONGER, GAPS_FOR_SHORTER = 1, 2  # pauses seen before the other lifetime is advised


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule, or one thing that will not work as meant."""

    code: str
    path: str
    sentence: str  # English, with %(names) of `values`; the pages translate it
    level: str = "error"  # error, warning or advice
    http: int | None = None
    facts: dict[str, Json] = field(default_factory=dict)
    values: dict[str, Json] = field(default_factory=dict)

    @property
    def message(self) -> str:
        """The sentence in English, filled in."""
        return self.sentence % self.values


def gettext_noop(sentence: str) -> str:
    """Mark a sentence for translation; the pages translate it where it is shown."""
    return sentence


@dataclass(frozen=True)
class Case:
    """What the checks look at."""

    body: Json
    prompt: Prompt
    exchange: Exchange
    history: tuple[Exchange, ...]
    rules: RuleVersion
    batch: bool
    read_ratio: Fraction

    @property
    def explicit(self) -> list[tuple[str, Json, str | None]]:
        """Return (path, holder, ttl) of every `cache_control` on a block, in rendered order; ttl None where malformed."""
        return list(_explicit_markers(self.body))

    @property
    def total_tokens(self) -> int:
        tokens = self.exchange.tokens
        return tokens.prompt if tokens and tokens.prompt else self.prompt.estimated_tokens


def validate(
    body: Json,
    *,
    exchange: Exchange | None = None,
    history: Sequence[Exchange] = (),
    rules: RuleVersion = rulebook.LATEST_RULES,
    batch: bool = False,
    read_ratio: Fraction = USUAL_READ,
) -> list[Finding]:
    """Return everything the rules have to say about the request, errors first."""
    prompt = read_prompt(body)
    case = Case(body, prompt, exchange or Exchange(prompt=prompt), tuple(history), rules, batch, read_ratio)
    return [finding for check in CHECKS for finding in check(case)]


# --- Errors ----------------------------------------------------------------------------------------------------------


def _explicit_markers(body: Json) -> Iterator[tuple[str, Json, str | None]]:
    for section in ("tools", "system"):
        blocks = body.get(section)
        for index, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if block.get("cache_control") is not None:
                yield f"{section}[{index}]", block, read_ttl(block["cache_control"])
    for index, message in enumerate(body.get("messages") or ()):
        content = message.get("content")
        for inner, block in enumerate(content if isinstance(content, list) else ()):
            if block.get("cache_control") is not None:
                yield f"messages[{index}].content[{inner}]", block, read_ttl(block["cache_control"])


def _automatic(case: Case) -> Json:
    return case.body.get("cache_control")


def _error(code: str, path: str, sentence: str, **values: Json) -> Finding:
    return Finding(code, path, sentence, http=REJECTED, values=values)


def check_marker_count(case: Case) -> Iterator[Finding]:
    explicit = case.explicit
    total = len(explicit) + (_automatic(case) is not None and not _automatic_is_no_op(case, explicit))
    if total > rulebook.MAX_MARKERS:
        path = explicit[rulebook.MAX_MARKERS][0] if len(explicit) > rulebook.MAX_MARKERS else "cache_control"
        sentence = gettext_noop("A maximum of %(most)s blocks with cache_control may be provided. Found %(found)s.")
        yield _error("too_many_markers", path, sentence, most=rulebook.MAX_MARKERS, found=total)


def _automatic_is_no_op(case: Case, explicit: list[tuple[str, Json, str | None]]) -> bool:
    """Return whether automatic caching adds no marker; with all four explicit it is refused even so."""
    last = case.prompt.last_cacheable
    marked = last is not None and case.prompt.blocks[last].ttl is not None
    return marked and len(explicit) != rulebook.MAX_MARKERS


def check_ttl_values(case: Case) -> Iterator[Finding]:
    sentence = gettext_noop('cache_control takes {"type": "ephemeral"} with a ttl of "5m" or "1h".')
    for path, _, ttl in case.explicit:
        if ttl is None:
            yield _error("ttl_value", path, sentence)
    if _automatic(case) is not None and read_ttl(_automatic(case)) is None:
        yield _error("ttl_value", "cache_control", sentence)


def check_ttl_order(case: Case) -> Iterator[Finding]:
    markers = [(path, ttl) for path, _, ttl in case.explicit]
    last = case.prompt.last_cacheable
    automatic = read_ttl(_automatic(case)) if _automatic(case) is not None else None
    if automatic and last is not None and case.prompt.blocks[last].ttl is None:
        markers.append(("cache_control", automatic))
    seen_short = False
    for path, ttl in markers:
        seen_short = seen_short or ttl == "5m"
        if ttl == "1h" and seen_short:
            sentence = gettext_noop("A 1h marker must not come after a 5m one; the order is tools, system, messages.")
            yield _error("ttl_order", path, sentence)
            return


def check_unmarkable_blocks(case: Case) -> Iterator[Finding]:
    for path, block, _ in case.explicit:
        kind = block.get("type")
        if kind in THINKING_TYPES:
            sentence = gettext_noop("A thinking block cannot carry a marker; mark the block before it.")
            yield _error("thinking_marker", path, sentence)
        elif block.get("text") == "" and not path.startswith("tools"):
            yield _error("empty_text_marker", path, gettext_noop("cache_control cannot be set for empty text blocks."))


def check_nested_markers(case: Case) -> Iterator[Finding]:
    for index, message in enumerate(case.body.get("messages") or ()):
        if message.get("cache_control") is not None:
            path = f"messages[{index}]"
            sentence = gettext_noop("A marker here does not count; put it on the last block of its content.")
            yield Finding("nested_marker", path, sentence)
    for path, block in _all_blocks(case.body):
        for key in _NESTING_FIELDS:
            for inner_path, part in _parts(block.get(key), f"{path}.{key}"):
                if part.get("cache_control") is not None:
                    sentence = gettext_noop("A marker here does not count; put it on %(parent)s.")
                    yield Finding("nested_marker", inner_path, sentence, values={"parent": path})


def _all_blocks(body: Json) -> Iterator[tuple[str, Json]]:
    system = body.get("system")
    for index, block in enumerate(system if isinstance(system, list) else ()):
        yield f"system[{index}]", block
    for index, message in enumerate(body.get("messages") or ()):
        content = message.get("content")
        for inner, block in enumerate(content if isinstance(content, list) else ()):
            yield f"messages[{index}].content[{inner}]", block


def _parts(value: Json, path: str) -> Iterator[tuple[str, Json]]:
    """Return every object inside a sub-field with its path."""
    if isinstance(value, dict):
        yield path, value
        for key in _NESTING_FIELDS:
            yield from _parts(value.get(key), f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _parts(item, f"{path}[{index}]")


def check_automatic_ttl(case: Case) -> Iterator[Finding]:
    last = case.prompt.last_cacheable
    automatic = read_ttl(_automatic(case)) if _automatic(case) is not None else None
    explicit = case.prompt.blocks[last].ttl if last is not None else None
    if automatic and explicit and automatic != explicit:
        sentence = gettext_noop(
            "Automatic caching asks for %(automatic)s, but the last block is marked %(explicit)s already."
        )
        yield _error("auto_ttl_conflict", "cache_control", sentence, automatic=automatic, explicit=explicit)


def check_prewarm(case: Case) -> Iterator[Finding]:
    body = case.body
    if body.get("max_tokens") != 0 or isinstance(body.get("max_tokens"), bool):
        return
    output = body.get("output_config") or {}
    illegal = {
        "stream": body.get("stream") is True,
        "thinking": (body.get("thinking") or {}).get("type") == "enabled",
        "output_config.format": output.get("format") is not None,
        "output_format": body.get("output_format") is not None,
        "tool_choice": (body.get("tool_choice") or {}).get("type") in ("any", "tool"),
        "batch": case.batch,
    }
    for path in (path for path, broken in illegal.items() if broken):
        sentence = gettext_noop("A request with max_tokens 0 only warms the cache; it can't use %(name)s.")
        yield _error("prewarm_illegal", path, sentence, name=path)


def check_clearing_messages(case: Case) -> Iterator[Finding]:
    for index, message in enumerate(case.body.get("messages") or ()):
        content = message.get("content")
        if not clears_itself(message) or not isinstance(content, list):
            continue
        for inner, block in enumerate(content):
            if block.get("cache_control") is not None:
                path = f"messages[{index}].content[{inner}]"
                yield _error(
                    "clear_at_marker", path, gettext_noop("A system message that clears itself cannot carry a marker.")
                )


# --- Warnings --------------------------------------------------------------------------------------------------------


def check_minimum(case: Case) -> Iterator[Finding]:
    minimum = rulebook.minimum_tokens(case.prompt.params.model)
    if minimum is None:
        return
    markers = case.prompt.effective_markers()
    for index, _ in markers:
        tokens = case.prompt.tokens_through(index, case.total_tokens)
        if tokens < minimum:
            facts = {"tokens": tokens, "minimum": minimum}
            yield Finding(
                "below_minimum",
                case.prompt.blocks[index].path,
                gettext_noop("About %(tokens)s tokens up to here; %(model)s caches from %(minimum)s on."),
                "warning",
                facts=facts,
                values={**facts, "model": case.prompt.params.model},
            )
    last = case.prompt.last_cacheable
    no_intent = not case.explicit and _automatic(case) is None
    if no_intent and last is not None and case.total_tokens >= minimum:
        sentence = gettext_noop("The prompt is long enough to be cached, but nothing marks it.")
        facts = {"tokens": case.total_tokens, "minimum": minimum}
        yield Finding("no_marker", case.prompt.blocks[last].path, sentence, "warning", facts=facts)


VOLATILE = {
    "timestamp": gettext_noop(
        "This timestamp stands before the first marker; when it changes, nothing behind it is read."
    ),
    "uuid": gettext_noop("This uuid stands before the first marker; when it changes, nothing behind it is read."),
    "counter": gettext_noop("This counter stands before the first marker; when it changes, nothing behind it is read."),
}


def check_volatile(case: Case) -> Iterator[Finding]:
    """Look at what every request repeats: tools and system, and messages up to the first explicit marker in them."""
    first = next((index for index, block in enumerate(case.prompt.blocks) if block.ttl), None)
    if first is None and case.prompt.automatic_ttl is None:
        return
    for index, block in enumerate(case.prompt.blocks):
        repeated = block.section != "messages" or (first is not None and index <= first and block.message == 0)
        if (first is not None and index > first) or not repeated:
            return
        for path, text in _texts(block):
            found = find_volatile(text, only_beside_now_words=block.section == "tools")
            if found:
                facts = {
                    "field": path,
                    "offset": found.offset,
                    "kind": found.kind,
                    "excerpt": excerpt(text, found.offset),
                }
                yield Finding("volatile_before_marker", block.path, VOLATILE[found.kind], "warning", facts=facts)
                return


def _texts(block: Block) -> Iterator[tuple[str, str]]:
    if isinstance(block.source, str):
        yield block.path, block.source
    elif isinstance(block.source, dict):
        for key in ("text", "description", "content"):
            if isinstance(block.source.get(key), str):
                yield f"{block.path}.{key}", block.source[key]


def check_varying_tail(case: Case) -> Iterator[Finding]:
    chain = [item for item in (*case.history, case.exchange) if item.prompt and item.markers]
    if len(chain) <= VARYING_REQUESTS:
        return
    replaced = 0
    for old, new in pairwise(chain):
        assert old.prompt is not None
        assert new.prompt is not None
        same = common_prefix_length(old.prompt.digests, new.prompt.digests) == old.last_marked
        was_read = new.tokens is not None and new.tokens.cache_read > old.prompt.tokens_through(
            old.last_marked - 1, new.tokens.prompt
        )
        replaced = replaced + 1 if same and not was_read else 0
    if replaced >= VARYING_REQUESTS:
        sentence = gettext_noop(
            "The marked block changed in each of the last %(requests)s requests; what is written there is never read."
        )
        path = case.prompt.blocks[case.exchange.last_marked].path
        facts = {"requests": replaced}
        yield Finding("varying_tail", path, sentence, "warning", facts=facts, values=facts)


def check_lookback(case: Case) -> Iterator[Finding]:
    markers = case.prompt.effective_markers()
    write = _last_known_write(case)
    if write is None or not markers or write >= len(case.prompt.blocks):
        return
    numbers = positions(case.prompt.blocks, case.rules)
    behind = [index for index, _ in markers if index >= write]
    if not behind or any(numbers[index] - numbers[write] < case.rules.lookback_positions for index in behind):
        return
    distance = numbers[behind[0]] - numbers[write]
    proposed = propose_marker(case.prompt, numbers, write, case.rules)
    yield Finding(
        "lookback_risk",
        case.prompt.blocks[behind[0]].path,
        gettext_noop("The last write lies %(distance)s positions back; a marker looks at %(most)s."),
        "warning",
        facts={"positions": distance, "propose": proposed},
        values={"distance": distance, "most": case.rules.lookback_positions},
    )


def _last_known_write(case: Case) -> int | None:
    """Return the furthest block that an earlier request wrote and that this one repeats."""
    writes = []
    for item in case.history:
        if item.prompt and item.markers:
            shared = common_prefix_length(item.prompt.digests, case.prompt.digests)
            writes += [index for index, _ in item.markers if index < shared]
    return max(writes, default=None)


def propose_marker(prompt: Prompt, numbers: Sequence[int], write: int, rules: RuleVersion) -> str | None:
    """Return the furthest block that can carry a marker and still finds the write."""
    within = [
        index
        for index in range(write, len(prompt.blocks))
        if numbers[index] - numbers[write] < rules.lookback_positions and prompt.blocks[index].can_carry
    ]
    return prompt.blocks[within[-1]].path if within else None


# --- Advice ----------------------------------------------------------------------------------------------------------


def check_ttl_choice(case: Case) -> Iterator[Finding]:
    markers = case.prompt.effective_markers()
    if not markers or not case.history:
        return
    pauses = measure_pauses([*case.history, case.exchange])
    threshold = hour_pays_above(case.read_ratio)
    share = pauses.rebuilt_share
    facts = {"rebuilt_share": round(float(share), 4), "threshold": round(float(threshold), 4)}
    hours = [index for index, ttl in markers if ttl == "1h"]
    if hours and share <= threshold and pauses.gap_count >= GAPS_FOR_SHORTER:
        sentence = gettext_noop("Few pauses are longer than five minutes here; 5m markers would be cheaper.")
        yield Finding("ttl_not_needed", case.prompt.blocks[hours[0]].path, sentence, "advice", facts=facts)
    elif not hours and share > threshold and pauses.gap_count >= GAPS_FOR_LONGER:
        sentence = gettext_noop("Much is rebuilt after pauses of 5 to 60 minutes; 1h markers would be cheaper.")
        yield Finding("ttl_too_short", case.prompt.blocks[markers[0][0]].path, sentence, "advice", facts=facts)


def check_fan_out(case: Case) -> Iterator[Finding]:
    """Group the requests by what they mark; several that start before the first one's first byte all pay the write."""
    groups: dict[bytes, list[Exchange]] = defaultdict(list)
    for item in (*case.history, case.exchange):
        if item.prompt and item.markers and item.started_at:
            for index, _ in item.markers:
                groups[item.prompt.prefix_hashes[index]].append(item)
    best = max((_cold_starts(group) for group in groups.values()), key=len, default=[])
    if len(best) > 1:
        prompt, (index, _) = best[0].prompt, best[0].markers[-1]
        assert prompt is not None
        sentence = gettext_noop(
            "%(requests)s requests with one prefix started before it could be read; send one first, then the others."
        )
        facts = {"requests": len(best)}
        yield Finding("cold_fanout", prompt.blocks[index].path, sentence, "advice", facts=facts, values=facts)


def _cold_starts(group: list[Exchange]) -> list[Exchange]:
    ordered = sorted(group, key=lambda item: item.started_at.timestamp() if item.started_at else 0.0)
    first = ordered[0]
    readable = first.first_byte_at or first.ended_at
    if readable is None or (first.tokens is not None and first.tokens.cache_read and not first.tokens.cache_write_5m):
        return []
    return [item for item in ordered if item is first or (item.started_at and item.started_at < readable)]


CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    check_marker_count,
    check_ttl_values,
    check_ttl_order,
    check_unmarkable_blocks,
    check_nested_markers,
    check_automatic_ttl,
    check_prewarm,
    check_clearing_messages,
    check_minimum,
    check_volatile,
    check_varying_tail,
    check_lookback,
    check_ttl_choice,
    check_fan_out,
)
