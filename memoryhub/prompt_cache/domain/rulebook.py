"""The provider's caching rules as dated data: what holds for which model, since when.

Rules change several times a year. Everything that has a number, a model name or a date in it stands here, so that a change
is one more row and old requests are still judged by the rules of their own day.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from memoryhub.prompt_cache.domain.model_ids import normalise_model

MAX_MARKERS = 4  # breakpoints a request may carry; automatic caching takes one of them
TTL_SECONDS = {"5m": 300, "1h": 3600}


@dataclass(frozen=True, slots=True)
class RuleVersion:
    """The rules that hold from one day until the next version's day."""

    name: str
    since: datetime
    lookback_positions: int  # how many positions a breakpoint looks at, itself included
    collapse_tool_runs: bool  # a run of tool_use blocks, or of tool_result blocks, counts as one position


RULE_VERSIONS = (
    RuleVersion("2024-08", datetime(2024, 8, 14, tzinfo=UTC), lookback_positions=20, collapse_tool_runs=False),
    RuleVersion("2026-09", datetime(2026, 9, 1, tzinfo=UTC), lookback_positions=20, collapse_tool_runs=True),
)
LATEST_RULES = RULE_VERSIONS[-1]


def rules_at(at: datetime | None) -> RuleVersion:
    """Return the rules of that moment; without a moment, the newest."""
    if at is None:
        return LATEST_RULES
    return next((version for version in reversed(RULE_VERSIONS) if version.since <= at), RULE_VERSIONS[0])


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the cache does differently for one model."""

    minimum_tokens: int  # a shorter prefix is silently not cached
    keeps_thinking: bool  # earlier thinking blocks stay in the prompt after a new plain user message
    thinking_defaults: frozenset[str]  # a `thinking.type` that equals leaving the field out


_OFF = frozenset({"disabled"})
# What the newest family does without the field depends on the model and is not published as a table; neither spelling of
# a possible default may be accused.
_OFF_OR_ADAPTIVE = frozenset({"disabled", "adaptive"})

MODEL_FACTS = {
    **{
        model: ModelFacts(512, True, _OFF_OR_ADAPTIVE)
        for model in (
            "claude-opus-5",
            "claude-opus-5-5",
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "claude-fable-5",
            "claude-fable-5-1",
            "claude-fable-5-2",
            "claude-mythos-5",
            "claude-mythos-5-1",
            "claude-mythos-5-2",
        )
    },
    "claude-sonnet-5": ModelFacts(1024, True, _OFF_OR_ADAPTIVE),
    "claude-opus-4-8": ModelFacts(1024, True, _OFF_OR_ADAPTIVE),
    "claude-sonnet-4-6": ModelFacts(1024, True, _OFF),
    "claude-sonnet-4-5": ModelFacts(1024, False, _OFF),
    "claude-sonnet-4": ModelFacts(1024, False, _OFF),
    "claude-opus-4-1": ModelFacts(1024, False, _OFF),
    "claude-opus-4": ModelFacts(1024, False, _OFF),
    "claude-opus-4-7": ModelFacts(2048, True, _OFF_OR_ADAPTIVE),
    "claude-mythos-preview": ModelFacts(2048, True, _OFF_OR_ADAPTIVE),
    "claude-3-5-haiku": ModelFacts(2048, False, _OFF),
    "claude-opus-4-6": ModelFacts(4096, True, _OFF),
    "claude-opus-4-5": ModelFacts(4096, True, _OFF),
    "claude-haiku-4-5": ModelFacts(4096, False, _OFF),
}
_ALIASES = {
    "claude-haiku-3-5": "claude-3-5-haiku",
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
}
DEFAULT_EFFORT = "high"
DEFAULT_SPEED = "standard"

# Beta names that switch the transport or the accounting, not the prompt.
NEUTRAL_BETAS = (
    "cache-diagnosis-",
    "prompt-caching-",
    "extended-cache-ttl-",
    "fine-grained-tool-streaming-",
    "output-128k-",
    "message-batches-",
    "files-api-",
    "token-counting-",
    "fast-mode-",
    "mid-conversation-",
)


def model_facts(model: str) -> ModelFacts | None:
    """Return what is known of the model, or None: an unknown id is never judged by its family's name."""
    name = normalise_model(model).name.removesuffix("-latest")
    return MODEL_FACTS.get(_ALIASES.get(name, name))


def minimum_tokens(model: str) -> int | None:
    """Return the shortest prefix the model caches, or None for a model we do not know."""
    facts = model_facts(model)
    return facts.minimum_tokens if facts else None
