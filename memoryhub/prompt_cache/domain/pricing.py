"""What a response cost: an effective-dated price book and the arithmetic over it.

The book is data (fixtures/prices/*.json plus a workspace's own entries); this module only looks prices up and multiplies.
cost_actual  = p*input + w5*write_5m + w1h*write_1h + r*read + o*output, times the modifiers, plus per-use charges
cost_nocache = p*(input + write_5m + write_1h + read) + o*output, times the same modifiers, plus the same charges
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.model_ids import normalise_model

# A single response that costs more than this is a broken counter, not a bill.
HIGHEST_PLAUSIBLE_COST_PICO = 100_000 * money.PICO_PER_USD
# Multipliers where no price is stated: the provider's general ratios to the input price.
USUAL_WRITE_5M = Fraction(5, 4)
USUAL_WRITE_1H = Fraction(2)
USUAL_READ = Fraction(1, 10)

# Looked-up (model, day) pairs that a book remembers; names come from outside, so the memory must not grow with them.
_REMEMBERED_DAYS = 20_000
_REMEMBERED_FACTORS = 2_000


class PriceBookError(ValueError):
    """The price data does not describe a price book."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Pico-USD per token of each kind."""

    input: int
    cache_write_5m: int
    cache_write_1h: int
    cache_read: int
    output: int

    @property
    def read_ratio(self) -> Fraction:
        """r: the price of a read token in input tokens (0.1, 0.05, 0.025)."""
        return Fraction(self.cache_read, self.input) if self.input else Fraction(0)


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """The price of one model between two UTC dates (both inclusive), for prompts above a size."""

    model: str
    rates: Rates
    valid_from: date | None = None
    valid_until: date | None = None
    prompt_tokens_above: int = 0
    source: str = "list"

    def covers(self, on: date) -> bool:
        return (self.valid_from is None or self.valid_from <= on) and (
            self.valid_until is None or on <= self.valid_until
        )


@dataclass(frozen=True, slots=True)
class Modifiers:
    """How the request was served; each multiplies every token kind."""

    service_tier: str = ""
    speed: str = ""
    inference_geo: str = ""
    region: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The disjoint counters of one response. The prompt's total is everything but the output."""

    input: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_write_5m + self.cache_write_1h + self.cache_read

    @property
    def all(self) -> int:
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class Cost:
    """A priced response. `unpriced` has no dollars at all, which is not the same as zero dollars."""

    cost_pico: int = 0
    nocache_pico: int = 0
    unpriced: bool = False
    flags: tuple[str, ...] = ()

    @property
    def net_saving_pico(self) -> int:
        return self.nocache_pico - self.cost_pico


@dataclass(frozen=True, slots=True)
class ModelRules:
    """Which surcharges a model knows."""

    fast: Fraction | None = None
    us_geo: bool = False


@dataclass(frozen=True)
class PriceBook:
    """All prices that hold for one workspace, with a version that changes exactly when a price or a rule changes."""

    entries: tuple[PriceEntry, ...]
    rules: Mapping[str, ModelRules]
    factors: Mapping[str, Fraction]
    web_search_pico: int
    aliases: Mapping[str, str] = field(default_factory=dict)
    version: str = field(init=False, default="")
    _by_model: dict[str, list[PriceEntry]] = field(init=False, default_factory=dict, repr=False, compare=False)
    _on_day: dict[tuple[str, date], list[PriceEntry]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    _factors: dict[tuple[str, Modifiers], tuple[Fraction, tuple[str, ...]]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for entry in self.entries:
            self._by_model.setdefault(entry.model, []).append(entry)
        object.__setattr__(self, "version", _version_of(self))

    def with_entries(self, own: Iterable[PriceEntry]) -> PriceBook:
        """The book with a workspace's own entries, which win over the list wherever they hold."""
        return replace(self, entries=self.entries + tuple(own))

    def canonical_model(self, name: str) -> str:
        return self.aliases.get(name, name)

    def knows(self, name: str) -> bool:
        return self.canonical_model(name) in self._by_model

    def entries_on(self, name: str, on: date) -> list[PriceEntry]:
        """The entries that hold on a day, highest prompt size first; empty when the model has no price then."""
        key = (name, on)
        found = self._on_day.get(key)
        if found is None:
            found = _holding_entries(self._by_model.get(self.canonical_model(name), []), on)
            if len(self._on_day) >= _REMEMBERED_DAYS:
                self._on_day.clear()
            self._on_day[key] = found
        return found

    def rates(self, model: str, at: datetime | date, prompt_tokens: int = 0) -> Rates | None:
        """List rates of a (normalised) model for a prompt of that size, before modifiers."""
        on = at.date() if isinstance(at, datetime) else at
        for entry in self.entries_on(model, on):
            if prompt_tokens > entry.prompt_tokens_above or not entry.prompt_tokens_above:
                return entry.rates
        return None

    def factor(self, model: str, modifiers: Modifiers) -> tuple[Fraction, tuple[str, ...]]:
        """The product of the modifiers, and what about them deserves a flag."""
        found = self._factors.get((model, modifiers))
        if found is None:
            if len(self._factors) >= _REMEMBERED_FACTORS:
                self._factors.clear()
            found = self._factors[model, modifiers] = self._factor(model, modifiers)
        return found

    def _factor(self, model: str, modifiers: Modifiers) -> tuple[Fraction, tuple[str, ...]]:
        rules = self.rules.get(self.canonical_model(model), ModelRules())
        product, flags = Fraction(1), []
        batch = modifiers.service_tier == "batch"
        if batch:
            product *= self.factors["batch"]
        elif modifiers.service_tier == "priority":
            flags.append("priority_at_list_price")
        if modifiers.speed == "fast":
            if rules.fast is not None and not batch:
                product *= rules.fast
            else:
                flags.append("fast_not_offered")
        product *= self._geo_factor(rules, modifiers)
        return product, tuple(flags)

    def _geo_factor(self, rules: ModelRules, modifiers: Modifiers) -> Fraction:
        """One surcharge for the place, the dearest that holds: they describe the same thing and don't stack."""
        places = [Fraction(1)]
        if modifiers.inference_geo == "us" and rules.us_geo:
            places.append(self.factors["us_geo"])
        if modifiers.region == "us-gov":
            places.append(self.factors["us_gov"])
        elif modifiers.region:
            places.append(self.factors["regional"])
        return max(places)

    def price(
        self, model: str, at: datetime, tokens: Tokens, modifiers: Modifiers = Modifiers(), web_searches: int = 0
    ) -> Cost:
        """What the response cost and would have cost without a cache. The tier is chosen by the whole prompt, per request."""
        rates = self.rates(model, at, tokens.prompt)
        if rates is None:
            return Cost(unpriced=True)
        factor, flags = self.factor(model, modifiers)
        output = rates.output * tokens.output
        actual = (
            rates.input * tokens.input
            + rates.cache_write_5m * tokens.cache_write_5m
            + rates.cache_write_1h * tokens.cache_write_1h
            + rates.cache_read * tokens.cache_read
            + output
        )
        nocache = rates.input * tokens.prompt + output
        charges = self.web_search_pico * web_searches
        return Cost(
            money.scaled(actual, factor.numerator, factor.denominator) + charges,
            money.scaled(nocache, factor.numerator, factor.denominator) + charges,
            flags=flags,
        )


def _holding_entries(entries: list[PriceEntry], on: date) -> list[PriceEntry]:
    """A workspace's own entries hide the list's, size by size; of several that hold, the latest `valid_from` counts."""
    holding = [entry for entry in entries if entry.covers(on)]
    by_size = {entry.prompt_tokens_above: entry for entry in _latest(holding, of_workspace=False)}
    own = _latest(holding, of_workspace=True)
    if any(entry.prompt_tokens_above == 0 for entry in own):
        by_size.clear()
    by_size |= {entry.prompt_tokens_above: entry for entry in own}
    return [by_size[size] for size in sorted(by_size, reverse=True)]


def _latest(entries: list[PriceEntry], *, of_workspace: bool) -> list[PriceEntry]:
    some = [entry for entry in entries if (entry.source == "workspace") == of_workspace]
    latest = max((entry.valid_from or date.min for entry in some), default=date.min)
    return [entry for entry in some if (entry.valid_from or date.min) == latest]


def _version_of(book: PriceBook) -> str:
    """A digest over everything that can change an amount, so that equal books have equal versions everywhere."""
    entries = sorted(
        [e.model, str(e.valid_from), str(e.valid_until), e.prompt_tokens_above, e.source, *_rate_list(e.rates)]
        for e in book.entries
    )
    rules = sorted([name, str(rule.fast), rule.us_geo] for name, rule in book.rules.items())
    factors = sorted([name, str(value)] for name, value in book.factors.items())
    facts = [entries, rules, factors, book.web_search_pico, sorted(book.aliases.items())]
    return "pb_" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _rate_list(rates: Rates) -> list[int]:
    return [rates.input, rates.cache_write_5m, rates.cache_write_1h, rates.cache_read, rates.output]


def make_rates(
    *,
    input: Any,
    output: Any,
    cache_write_5m: Any = None,
    cache_write_1h: Any = None,
    cache_read: Any = None,
) -> Rates:
    """Rates from prices in USD per million tokens; a cache price that is left out follows the usual ratio."""
    base = money.rate_from_usd_per_million(input)

    def rate(value: Any, usual: Fraction) -> int:
        if value is None:
            return money.scaled(base, usual.numerator, usual.denominator)
        return money.rate_from_usd_per_million(value)

    return Rates(
        input=base,
        cache_write_5m=rate(cache_write_5m, USUAL_WRITE_5M),
        cache_write_1h=rate(cache_write_1h, USUAL_WRITE_1H),
        cache_read=rate(cache_read, USUAL_READ),
        output=money.rate_from_usd_per_million(output),
    )


def read_price_book(data: Mapping[str, Any]) -> PriceBook:
    """The price book that a price file describes (see fixtures/prices/)."""
    try:
        entries: list[PriceEntry] = []
        rules: dict[str, ModelRules] = {}
        aliases: dict[str, str] = {}
        for model in data["models"]:
            names = [normalise_model(name).name for name in model["ids"]]
            for alias in model.get("aliases", []):
                aliases[alias] = names[0]
            fast = Fraction(model["fast"]) if "fast" in model else None
            for name in names:
                rules[name] = ModelRules(fast=fast, us_geo=bool(model.get("us_geo")))
                entries.extend(_read_entry(name, row) for row in model.get("prices", []))
        return PriceBook(
            entries=tuple(entries),
            rules=rules,
            factors={name: Fraction(value) for name, value in data["factors"].items()},
            web_search_pico=int(Fraction(data["per_use_usd"]["web_search"]) * money.PICO_PER_USD),
            aliases=aliases,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PriceBookError(f"the price file is not readable: {error!r}") from error


def _read_entry(name: str, row: Mapping[str, Any]) -> PriceEntry:
    return PriceEntry(
        model=name,
        rates=make_rates(
            input=row["input"],
            output=row["output"],
            cache_write_5m=row["cache_write_5m"],
            cache_write_1h=row["cache_write_1h"],
            cache_read=row["cache_read"],
        ),
        valid_from=date.fromisoformat(row["from"]) if "from" in row else None,
        valid_until=date.fromisoformat(row["until"]) if "until" in row else None,
        prompt_tokens_above=row.get("prompt_tokens_above", 0),
    )
