"""Reading the `usage` object of a response, whoever wrote it, into disjoint counters.

Two conventions exist. Anthropic's is exclusive: `input_tokens` is only what follows the last breakpoint. OpenTelemetry, OpenAI
and LiteLLM are inclusive: the input counts the cached tokens too. What is read here keeps *missing* (None) apart from zero,
so that several sightings of one response can be joined by the field-wise maximum in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from memoryhub.prompt_cache.domain.pricing import Tokens

Convention = Literal["anthropic", "inclusive"]
CONVENTIONS: tuple[str, ...] = ("anthropic", "inclusive")

# One response never carries more; a counter above it is flagged and left out of sums.
HIGHEST_PLAUSIBLE_TOKENS = 10**10
# What the ledger can store at all (a signed 64-bit column, with room for sums).
HIGHEST_STORABLE_TOKENS = 10**15
HIGHEST_ITERATIONS = 1_000

NEGATIVE = "negative_number"
PART_EXCEEDS_TOTAL = "part_exceeds_total"
IMPLAUSIBLE = "implausible_number"
SPLIT_MISSING = "split_missing"
SPLIT_PARTIAL = "split_partial"
# A record with one of these is stored and shown, and left out of every sum.
EXCLUDING_FLAGS = frozenset({NEGATIVE, PART_EXCEEDS_TOTAL, IMPLAUSIBLE})


class UsageError(ValueError):
    """The usage object can't be read; `path` says where."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Stated:
    """The numbers of one response as a source stated them, made exclusive; None is "not stated"."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_5m: int | None = None
    cache_write_1h: int | None = None
    thinking: int | None = None
    web_searches: int | None = None
    web_fetches: int | None = None

    def joined(self, other: Stated) -> Stated:
        """The field-wise maximum: placeholders and cumulative streams end at the right number, in any order."""
        if self == other:
            return self
        return Stated(*map(larger, self.numbers(), other.numbers()))

    def numbers(self) -> tuple[int | None, ...]:
        """All numbers, in the order of STATED_FIELDS."""
        return (
            self.input,
            self.output,
            self.cache_read,
            self.cache_write,
            self.cache_write_5m,
            self.cache_write_1h,
            self.thinking,
            self.web_searches,
            self.web_fetches,
        )

    def tokens(self) -> Tokens:
        """The disjoint counters. What the 5m/1h split does not cover counts as 5m, the cheaper write."""
        short, long = self.cache_write_5m or 0, self.cache_write_1h or 0
        rest = max(0, (self.cache_write or 0) - short - long) if short >= 0 and long >= 0 else 0
        if self.cache_write is not None and self.cache_write < 0 and not short and not long:
            rest = self.cache_write
        return Tokens(self.input or 0, short + rest, long, self.cache_read or 0, self.output or 0)

    def flags(self, convention: str) -> tuple[str, ...]:
        """What is wrong or missing in these numbers."""
        numbers = [value for value in self.numbers() if value is not None]
        found = []
        inclusive_input = convention == "inclusive" and self.input is not None and self.input < 0
        if inclusive_input:
            found.append(PART_EXCEEDS_TOTAL)
        if any(value < 0 for value in numbers) and not (inclusive_input and sum(v < 0 for v in numbers) == 1):
            found.append(NEGATIVE)
        if any(value > HIGHEST_PLAUSIBLE_TOKENS for value in numbers):
            found.append(IMPLAUSIBLE)
        split = (self.cache_write_5m or 0) + (self.cache_write_1h or 0)
        if self.cache_write is not None and not found:
            if split > self.cache_write:
                found.append(PART_EXCEEDS_TOTAL)
            elif split < self.cache_write:
                found.append(SPLIT_PARTIAL if split else SPLIT_MISSING)
        return tuple(found)


STATED_FIELDS: tuple[str, ...] = tuple(field.name for field in fields(Stated))


def larger(left: int | None, right: int | None) -> int | None:
    """The larger of two numbers, of which either may be missing."""
    if left is None:
        return right
    if right is None:
        return left
    return max(left, right)


@dataclass(frozen=True, slots=True)
class UsagePart:
    """One billed piece of a response: the message itself (index 0), or an iteration that its totals leave out."""

    index: int
    kind: str
    stated: Stated
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """A usage object, read."""

    parts: tuple[UsagePart, ...]
    convention: Convention
    service_tier: str = ""
    speed: str = ""
    inference_geo: str = ""


# Billed beside the top-level numbers, not within them.
_EXTRA_ITERATIONS = {"compaction", "advisor_message"}
_INCLUSIVE_MARKS = ("prompt_tokens", "gen_ai.usage.input_tokens", "input_tokens_details", "prompt_tokens_details")
_INPUT = ("input_tokens", "prompt_tokens", "gen_ai.usage.input_tokens")
_OUTPUT = ("output_tokens", "completion_tokens", "gen_ai.usage.output_tokens")
_READ = ("cache_read_input_tokens", "gen_ai.usage.cache_read.input_tokens")
_WRITE = ("cache_creation_input_tokens", "gen_ai.usage.cache_creation.input_tokens")
_NO_GEO = {"not_available", "none", "null"}


def detect_convention(raw: Mapping[str, Any]) -> Convention:
    """Field names that only inclusive counters have give the convention away; otherwise it is Anthropic's."""
    return "inclusive" if any(name in raw for name in _INCLUSIVE_MARKS) else "anthropic"


def read_usage(raw: Any, convention: Convention | None = None) -> Usage:
    """The parts and modifiers of a usage object; raises UsageError where it can't be a usage object."""
    if not isinstance(raw, Mapping):
        raise UsageError("usage", "is not an object")
    known = convention or detect_convention(raw)
    top = _read_stated(raw, known, "usage")
    if top == Stated():
        raise UsageError("usage", "states no counter")
    return Usage(
        parts=(UsagePart(0, "message", top), *_read_iterations(raw.get("iterations"), known)),
        convention=known,
        service_tier=_word(raw, "service_tier"),
        speed=_word(raw, "speed"),
        inference_geo=_geo(raw),
    )


def _read_iterations(raw: Any, convention: Convention) -> list[UsagePart]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise UsageError("usage.iterations", "is not a list")
    if len(raw) > HIGHEST_ITERATIONS:
        raise UsageError("usage.iterations", f"has more than {HIGHEST_ITERATIONS:,} entries")
    parts = []
    for index, entry in enumerate(raw, start=1):
        path = f"usage.iterations[{index - 1}]"
        if not isinstance(entry, Mapping):
            raise UsageError(path, "is not an object")
        kind = entry.get("type")
        if kind not in _EXTRA_ITERATIONS:
            continue
        model = entry.get("model")
        if model is not None and not isinstance(model, str):
            raise UsageError(f"{path}.model", "is not a string")
        own_model = model if kind == "advisor_message" else None
        if kind == "advisor_message" and not own_model:
            own_model = "unknown"
        parts.append(UsagePart(index, kind, _read_stated(entry, convention, path), own_model))
    return parts


def _read_stated(raw: Mapping[str, Any], convention: Convention, path: str) -> Stated:
    if convention == "anthropic" and "input_tokens" in raw:
        plain = _read_plain(raw)
        if plain is not None:
            return plain
    return _read_any(raw, convention, path)


def _read_plain(raw: Mapping[str, Any]) -> Stated | None:
    """The shape that the provider itself sends, read quickly; None where anything about it is unusual."""
    split, tools, details = raw.get("cache_creation"), raw.get("server_tool_use"), raw.get("output_tokens_details")
    for part in (split, tools, details):
        if part is not None and type(part) is not dict:
            return None
    split, tools, details = split or {}, tools or {}, details or {}
    numbers = (
        raw["input_tokens"],
        raw.get("output_tokens"),
        raw.get("cache_read_input_tokens"),
        raw.get("cache_creation_input_tokens"),
        split.get("ephemeral_5m_input_tokens"),
        split.get("ephemeral_1h_input_tokens"),
        details.get("thinking_tokens"),
        tools.get("web_search_requests"),
        tools.get("web_fetch_requests"),
    )
    for number in numbers:
        if number is not None and (type(number) is not int or abs(number) > HIGHEST_STORABLE_TOKENS):
            return None
    return Stated(*numbers)


def _read_any(raw: Mapping[str, Any], convention: Convention, path: str) -> Stated:
    split = _object(raw, "cache_creation", path)
    tools = _object(raw, "server_tool_use", path)
    details = _object(raw, "output_tokens_details", path) or _object(raw, "completion_tokens_details", path)
    short = _number(split, ("ephemeral_5m_input_tokens",), f"{path}.cache_creation")
    long = _number(split, ("ephemeral_1h_input_tokens",), f"{path}.cache_creation")
    read = _number(raw, _READ, path)
    write = _number(raw, _WRITE, path)
    for name in ("prompt_tokens_details", "input_tokens_details"):
        inner = _object(raw, name, path)
        read = larger(read, _number(inner, ("cached_tokens",), f"{path}.{name}"))
        write = larger(write, _number(inner, ("cache_creation_tokens", "cache_write_tokens"), f"{path}.{name}"))
    given = _number(raw, _INPUT, path)
    if convention == "inclusive" and given is not None:
        written = write if write is not None else (short or 0) + (long or 0)
        given = given - (read or 0) - written
    return Stated(
        input=given,
        output=_number(raw, _OUTPUT, path),
        cache_read=read,
        cache_write=write,
        cache_write_5m=short,
        cache_write_1h=long,
        thinking=_number(details, ("thinking_tokens", "reasoning_tokens"), f"{path}.output_tokens_details"),
        web_searches=_number(tools, ("web_search_requests",), f"{path}.server_tool_use"),
        web_fetches=_number(tools, ("web_fetch_requests",), f"{path}.server_tool_use"),
    )


def _object(raw: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(f"{path}.{name}", "is not an object")
    return value


def _number(raw: Mapping[str, Any], names: tuple[str, ...], path: str) -> int | None:
    """The first of the names that is stated. Whole numbers only: text, fractions and truth values are refused, not guessed."""
    for name in names:
        value = raw.get(name)
        if value is None:
            continue
        if type(value) is float and value.is_integer() and abs(value) <= HIGHEST_STORABLE_TOKENS:
            value = int(value)
        if type(value) is not int:
            raise UsageError(f"{path}.{name}", "is not a whole number")
        if abs(value) > HIGHEST_STORABLE_TOKENS:
            raise UsageError(f"{path}.{name}", "is too large for a token count")
        return value
    return None


def _word(raw: Mapping[str, Any], name: str) -> str:
    value = raw.get(name)
    if value is None or value == "standard":
        return value or ""
    if not isinstance(value, str) or len(value) > 40:
        raise UsageError(f"usage.{name}", "is not a short string")
    return value.strip().lower()


def _geo(raw: Mapping[str, Any]) -> str:
    value = _word(raw, "inference_geo")
    return "" if value in _NO_GEO else value
