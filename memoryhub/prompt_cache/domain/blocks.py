"""A Messages request as the cache sees it: blocks in rendered order (tools, system, messages), markers, and parameters.

Blocks are hashed as received, key order kept, without what is not part of the prompt: `cache_control`, the
citations switch, deferred tools, messages that clear themselves.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import orjson

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.rulebook import RuleVersion

Json = Any
DIGEST_BYTES = 16  # enough to tell blocks apart, half the room where they are stored
BYTES_PER_TOKEN = 4  # English text and JSON under current tokenizers; only for requests that nobody has billed yet
THINKING_TYPES = ("thinking", "redacted_thinking")
_KEYED_ORDER_SECTIONS = ("tools", "system", "messages")


@dataclass(frozen=True, slots=True)
class Block:
    """One position of the rendered prompt."""

    section: str  # tools, system or messages
    path: str  # where it stands in the JSON body
    type: str
    role: str
    digest: bytes  # of its bytes and its role
    weight: int  # bytes that the model reads; billed tokens are apportioned by it
    ttl: str | None = None  # the explicit marker it carries
    message: int = -1  # index of its message
    can_carry: bool = True  # may carry a marker
    source: Json = None  # the block as received; None where only hashes are left
    canonical: bytes | None = None  # digest that ignores key order, where the source is gone

    @property
    def is_thinking(self) -> bool:
        return self.type in THINKING_TYPES


@dataclass(frozen=True, slots=True)
class Params:
    """What beside the blocks decides which cache entries match."""

    model: str = ""
    region: str = ""
    speed: str = rulebook.DEFAULT_SPEED
    thinking: str = ""  # canonical JSON without display settings; "" when left out
    effort: str = rulebook.DEFAULT_EFFORT
    tool_choice: str = "auto"
    disable_parallel: bool = False
    web_tools: tuple[tuple[str, str, str], ...] = ()  # (name, path, digest)
    citations_path: str = ""  # the first block with citations switched on
    image_path: str = ""  # the first image
    context_management: str = ""
    output_format: str = ""
    task_budget: str = ""
    betas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prompt:
    """A request as the cache sees it."""

    blocks: tuple[Block, ...]
    params: Params
    automatic_ttl: str | None = None
    last_message: int = -1
    drops_thinking: bool = False  # has thinking blocks that an older model no longer shows

    @cached_property
    def cumulative_weights(self) -> list[int]:
        return list(accumulate(block.weight for block in self.blocks))

    @property
    def total_weight(self) -> int:
        return self.cumulative_weights[-1] if self.blocks else 0

    @cached_property
    def digests(self) -> list[bytes]:
        return [block.digest for block in self.blocks]

    @cached_property
    def prefix_hashes(self) -> list[bytes]:
        """Return the hash of everything up to and including each block, with the parameters that precede it."""
        salts = section_salts(self.params)
        hashes, current, section = [], b"", ""
        for block in self.blocks:
            while section != block.section:
                section = _KEYED_ORDER_SECTIONS[_KEYED_ORDER_SECTIONS.index(section) + 1] if section else "tools"
                current = hashlib.sha256(current + salts[section]).digest()
            current = hashlib.sha256(current + block.digest).digest()
            hashes.append(current)
        return hashes

    @property
    def last_cacheable(self) -> int | None:
        """Return the index of the block that automatic caching marks."""
        return next((index for index in range(len(self.blocks) - 1, -1, -1) if self.blocks[index].can_carry), None)

    def effective_markers(self) -> list[tuple[int, str]]:
        """Return (block index, ttl) of every explicit marker and of the automatic one, in rendered order."""
        markers = [(index, block.ttl) for index, block in enumerate(self.blocks) if block.ttl and block.can_carry]
        last = self.last_cacheable
        if self.automatic_ttl and last is not None and all(index != last for index, _ in markers):
            markers.append((last, self.automatic_ttl))
        return markers

    def tokens_through(self, index: int, total_tokens: int) -> int:
        """Return the share of the billed tokens that lies in blocks 0..index, by byte length."""
        if index < 0 or not self.total_weight:
            return 0
        return round(total_tokens * self.cumulative_weights[index] / self.total_weight)

    @property
    def estimated_tokens(self) -> int:
        return estimate_from_weight(self.total_weight)


def estimate_from_weight(weight: int) -> int:
    """Return about how many tokens so many bytes are, for a request that has not been billed."""
    return round(weight / BYTES_PER_TOKEN)


def section_salts(params: Params) -> dict[str, bytes]:
    """Return what each section's hash depends on beside its blocks (which change loses which section)."""
    web = ",".join(sorted(f"{name}:{digest}" for name, _, digest in params.web_tools))
    return {
        # Thinking is model-specific for tools and system; treating it as starting over never promises a hit too many.
        "tools": _salt(params.model, params.region, params.thinking, params.speed),
        "system": _salt(web, bool(params.citations_path)),
        "messages": _salt(
            params.tool_choice, params.disable_parallel, bool(params.image_path), params.effort, params.task_budget
        ),
    }


def _salt(*parts: object) -> bytes:
    return "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")


def positions(blocks: Sequence[Block], rules: RuleVersion) -> list[int]:
    """Return each block's position number; runs of tool blocks share one where the rules say so."""
    numbers, number, previous = [], -1, ""
    for block in blocks:
        kind = block.type if block.section == "messages" and block.type in ("tool_use", "tool_result") else ""
        if not (rules.collapse_tool_runs and kind and kind == previous):
            number += 1
        previous = kind
        numbers.append(number)
    return numbers


# --- Bytes ---


def nested_blocks(block: Json) -> list[Json]:
    content = block.get("content")
    return content if isinstance(content, list) else []


def prompt_part(block: Json) -> Json:
    """Return the block without what is not rendered: markers (also those of sub-blocks) and the citations switch."""
    drop = ["cache_control"] if "cache_control" in block else []
    if isinstance(block.get("citations"), dict):
        drop.append("citations")
    part = without(block, *drop)
    if any(
        isinstance(item, dict) and ("cache_control" in item or isinstance(item.get("citations"), dict))
        for item in nested_blocks(block)
    ):
        part = {**part, "content": [prompt_part(item) if isinstance(item, dict) else item for item in block["content"]]}
    source = block.get("source")
    if isinstance(source, dict) and any(
        isinstance(item, dict) and "cache_control" in item for item in nested_blocks(source)
    ):
        part = {**part, "source": prompt_part(source)}
    return part


def without(value: Json, *keys: str) -> Json:
    return {key: item for key, item in value.items() if key not in keys} if keys else value


def dump(value: Json) -> bytes:
    """Return the value's compact JSON, key order as received."""
    try:
        return orjson.dumps(value)
    except (TypeError, ValueError):  # integers beyond 64 bits, lone surrogates
        return json.dumps(value, separators=(",", ":")).encode()


def canonical_digest(block: Block) -> bytes:
    """Return a digest of the block that does not depend on the order of keys."""
    if block.canonical is not None:
        return block.canonical
    source = block.source
    if isinstance(source, str):
        source = {"type": "text", "text": source}
    part = without(source, "cache_control") if block.section == "tools" else prompt_part(source)
    try:
        data = orjson.dumps(part, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        data = json.dumps(part, separators=(",", ":"), sort_keys=True).encode()
    return block_digest(block.role.encode("utf-8", "surrogatepass"), data)


def block_digest(role: bytes, data: bytes) -> bytes:
    digest = hashlib.sha256(role + b"\x00")
    digest.update(data)
    return digest.digest()[:DIGEST_BYTES]
