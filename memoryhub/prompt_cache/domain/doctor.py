"""Why a request missed the prompt cache, where, and what it cost.

`diagnose` compares a request with the one before it. First it looks for a difference that the cache feels; where the
prefix is equal, the usage and the clock tell the rest (too short, unmarked, out of reach, expired, too early). It never
accuses what does not break the cache: appended turns, moved markers, metadata, sampling, deferred tools.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memoryhub.prompt_cache.domain import advice
from memoryhub.prompt_cache.domain.blocks import estimate_from_weight
from memoryhub.prompt_cache.domain.coldness import suspect, why_cold, why_nothing_cached
from memoryhub.prompt_cache.domain.divergence import Divergence, common_prefix_length, find_divergences
from memoryhub.prompt_cache.domain.exchange import Exchange, Tariff, cached_tokens, written_tokens
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.pricing import Tokens

HIT_PERCENT = 95  # of the expected tokens; below it the request missed
REPORTED_MISS_TOKENS = 2000  # smaller misses are answered when asked for, but not reported on their own
# The provider's words that say nothing about what changed.
SILENT_REASONS = frozenset({"unavailable", "previous_message_not_found"})
# The provider's word for each of our causes; a cause that is not here is no divergence in its eyes.
PROVIDER_WORDS = {
    "model_changed": frozenset({"model_changed"}),
    "speed_changed": frozenset({"model_changed"}),
    "tools_changed": frozenset({"tools_changed"}),
    "web_tools_changed": frozenset({"tools_changed", "system_changed"}),
    "citations_changed": frozenset({"system_changed", "messages_changed"}),
    "system_changed": frozenset({"system_changed"}),
    "image_toggled": frozenset({"messages_changed"}),
    "thinking_stripped": frozenset({"messages_changed"}),
    "messages_changed": frozenset({"messages_changed"}),
    "varying_tail": frozenset({"messages_changed"}),
}
# Differences for which the provider answers `unavailable`: its silence on them is no disagreement.
UNNAMED_BY_PROVIDER = frozenset({"thinking_changed", "effort_changed", "tool_choice_changed", "workspace_changed"})


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The doctor's answer about one request."""

    verdict: str  # first, hit or miss
    cause: str = "none"
    detail: str | None = None
    path: str | None = None
    offset: int | None = None
    kind: str | None = None
    before: str | None = None
    after: str | None = None
    expected_tokens: int = 0
    read_tokens: int = 0
    missed_tokens: int = 0
    missed_pico: int | None = None  # None: the model has no price on that day
    provider_reason: str | None = None
    agrees: bool | None = None
    also: tuple[str, ...] = ()
    fix: str = ""
    basis: str = "body"  # body, hashes or usage: what the answer rests on
    estimated: bool = False  # tokens come from lengths, because nothing was billed
    reported: bool = False  # large enough to be listed among the misses


@dataclass(frozen=True, slots=True)
class _Balance:
    """What the previous request left in the cache and what of it was read."""

    expected: int
    read: int
    estimated: bool = False

    @property
    def verdict(self) -> str:
        if self.expected == 0:
            return "first"
        return "hit" if self.read * 100 >= HIT_PERCENT * self.expected else "miss"

    @property
    def missed(self) -> int:
        return max(0, self.expected - self.read)


def diagnose(
    previous: Exchange | None, current: Exchange, history: Sequence[Exchange] = (), tariff: Tariff | None = None
) -> Diagnosis:
    """Return why `current` read less than what `previous` had left in the cache, or that all is well.

    1. the earliest difference that the cache feels
    2. expected and read tokens, and from them the verdict
    3. for a miss without a difference: size, markers, distance and clock; then parameters that may be at fault
    4. the price, the fix, and whether the provider says the same
    """
    if previous is None:
        return _beside_provider(_first_request(current), current, compared=False)
    divergences, basis = _compare(previous, current)
    finding, set_aside = _select(previous, current, divergences)
    balance = _balance(previous, current, finding, history)
    if finding is None and balance.verdict == "miss":
        cold = why_cold(previous, current, history) or suspect(previous, current)
        finding = cold or set_aside or Divergence("unknown", "", "")
    elif finding is None and balance.verdict == "first":
        finding = why_nothing_cached(previous, current)
    also = tuple(dict.fromkeys(item.cause for item in divergences if finding and item.cause != finding.cause))
    answer = _answer(finding, balance, also, basis)
    if tariff is not None:
        priced = current.tokens if current.tokens and not balance.estimated else None
        answer = replace(answer, missed_pico=price_miss(balance.missed, priced, tariff))
    return _beside_provider(answer, current, compared=basis != "usage")


def price_miss(missed: int, tokens: Tokens | None, tariff: Tariff) -> int:
    """Return what the missed tokens cost beyond reading them, in pico-USD.

    What was written again costs its write price, 1h first where a write was mixed; the rest was plain input. Without a
    bill all of it counts as written for five minutes.
    """
    rates = tariff.rates
    written = missed if tokens is None else min(missed, written_tokens(tokens))
    written_1h = 0 if tokens is None else min(written, tokens.cache_write_1h)
    return tariff.pico(
        written_1h * (rates.cache_write_1h - rates.cache_read)
        + (written - written_1h) * (rates.cache_write_5m - rates.cache_read)
        + (missed - written) * (rates.input - rates.cache_read)
    )


def _first_request(current: Exchange) -> Diagnosis:
    finding = why_nothing_cached(Exchange(), current)
    read = current.tokens.cache_read if current.tokens else 0
    return _answer(finding, _Balance(0, read), (), "body" if current.prompt else "usage")


def _answer(finding: Divergence | None, balance: _Balance, also: tuple[str, ...], basis: str) -> Diagnosis:
    answer = Diagnosis(
        verdict=balance.verdict,
        expected_tokens=balance.expected,
        read_tokens=balance.read,
        missed_tokens=balance.missed,
        also=also,
        basis=basis,
        estimated=balance.estimated,
        reported=balance.missed * 20 > balance.expected and balance.missed >= REPORTED_MISS_TOKENS,
    )
    if finding is None:
        return answer
    return replace(
        answer,
        cause=finding.cause,
        detail=finding.detail or None,
        path=finding.path or None,
        offset=finding.offset,
        kind=finding.kind,
        before=finding.before,
        after=finding.after,
        fix=advice.fix_for(finding.cause, finding.detail, finding.kind, finding.path),
    )


def _beside_provider(answer: Diagnosis, current: Exchange, *, compared: bool) -> Diagnosis:
    """Return the answer with the provider's word and whether both say the same; None where one of them can't know.

    Whoever had no two bodies to compare and names no difference says nothing about what changed, so nobody can disagree.
    """
    reason, words = current.provider_reason, PROVIDER_WORDS.get(answer.cause, frozenset())
    agrees: bool | None = None
    if not words and not compared:
        pass
    elif reason is not None and reason not in SILENT_REASONS:
        agrees = reason in words
    elif reason is None and current.provider_saw_no_change and answer.cause not in UNNAMED_BY_PROVIDER:
        agrees = not words
    return replace(answer, provider_reason=reason, agrees=agrees)


# --- The difference --------------------------------------------------------------------------------------------------


def _compare(previous: Exchange, current: Exchange) -> tuple[list[Divergence], str]:
    """Return all differences in the cache's order, and what the comparison rests on."""
    found, basis = [], "usage"
    if previous.workspace and current.workspace and previous.workspace != current.workspace:
        found.append(Divergence("workspace_changed", "workspace", before=previous.workspace, after=current.workspace))
    if previous.prompt and current.prompt:
        blocks = (*previous.prompt.blocks, *current.prompt.blocks)
        basis = "body" if all(block.source is not None for block in blocks) else "hashes"
        found += find_divergences(previous.prompt, current.prompt)
    elif previous.model and current.model and normalise_model(previous.model) != normalise_model(current.model):
        found.append(Divergence("model_changed", "model", before=previous.model, after=current.model))
    return found, basis


def _select(
    previous: Exchange, current: Exchange, divergences: list[Divergence]
) -> tuple[Divergence | None, Divergence | None]:
    """Return the earliest difference that matters, and one that was set aside because it should not.

    A new last message is a new question, not an edit of an old one: behind the last marker it breaks nothing, under it
    the marker stands on a tail that varies.
    """
    first = divergences[0] if divergences else None
    if first is None or first.cause != "messages_changed" or not _is_new_tail(previous, current, first):
        return first, None
    if not previous.markers:
        return first, None
    if previous.last_marked >= first.block:
        return replace(first, cause="varying_tail"), None
    return None, first


def _is_new_tail(previous: Exchange, current: Exchange, divergence: Divergence) -> bool:
    """Return whether only the last message differs: the conversation did not grow, its end was replaced."""
    old, new = previous.prompt, current.prompt
    if old is None or new is None or divergence.detail in ("reordered", "key_order"):
        return False
    index = common_prefix_length(old.digests, new.digests)
    message = old.blocks[index].message if index < len(old.blocks) else -1
    return 0 <= message == old.last_message == new.last_message


# --- Expected and read -----------------------------------------------------------------------------------------------


def _balance(
    previous: Exchange, current: Exchange, finding: Divergence | None, history: Sequence[Exchange]
) -> _Balance:
    if current.tokens is not None:
        if previous.tokens is not None:
            expected = cached_tokens(previous.tokens)
        elif previous.prompt and current.prompt:
            weight = previous.prompt.cumulative_weights[previous.last_marked] if previous.last_marked >= 0 else 0
            expected = current.tokens.prompt * weight // max(1, current.prompt.total_weight)
        else:
            expected = 0
        return _Balance(min(expected, current.tokens.prompt), current.tokens.cache_read)
    if previous.prompt is None or current.prompt is None:
        return _Balance(0, 0)
    return _predict(previous, finding or why_cold(previous, current, history))


def _predict(previous: Exchange, finding: Divergence | None) -> _Balance:
    """Return what would be read, where the current request has not been billed: up to the last marker that still holds."""
    assert previous.prompt is not None
    weights = previous.prompt.cumulative_weights
    if not weights:
        return _Balance(0, 0, estimated=True)
    whole = weights[previous.last_marked]
    expected = cached_tokens(previous.tokens) if previous.tokens else estimate_from_weight(whole)
    if finding is None:
        return _Balance(expected, expected, estimated=True)
    kept = max((weights[index] for index, _ in previous.markers if index < finding.block), default=0)
    return _Balance(expected, expected * kept // max(1, whole), estimated=True)
