"""One request with what is known of its response, and the price that holds for it."""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.blocks import Prompt
from memoryhub.prompt_cache.domain.pricing import Modifiers, PriceBook, Rates, Tokens


@dataclass(frozen=True, slots=True)
class Tariff:
    """The rates of one request (pico-USD per token) and the product of its modifiers."""

    rates: Rates
    factor: Fraction = Fraction(1)

    def pico(self, list_price_pico: int) -> int:
        """Return an amount at list price with the modifiers on it."""
        return money.scaled(list_price_pico, self.factor.numerator, self.factor.denominator)

    def price(self, tokens: Tokens) -> int:
        """Return what these tokens cost, without per-use charges."""
        rates = self.rates
        return self.pico(
            rates.input * tokens.input
            + rates.cache_write_5m * tokens.cache_write_5m
            + rates.cache_write_1h * tokens.cache_write_1h
            + rates.cache_read * tokens.cache_read
            + rates.output * tokens.output
        )


def find_tariff(book: PriceBook, model: str, at: datetime, prompt_tokens: int, modifiers: Modifiers) -> Tariff | None:
    """Return the tariff of a (normalised) model at a moment, None where the book has no price."""
    rates = book.rates(model, at, prompt_tokens)
    return None if rates is None else Tariff(rates, book.factor(model, modifiers)[0])


def cached_tokens(tokens: Tokens) -> int:
    """Return how many tokens of the prompt were in the cache when the response began."""
    return tokens.cache_read + written_tokens(tokens)


def written_tokens(tokens: Tokens) -> int:
    return tokens.cache_write_5m + tokens.cache_write_1h


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request with what is known of its response. Without a prompt only usage and time can be compared."""

    prompt: Prompt | None = None
    tokens: Tokens | None = None  # the billed counters; None where nobody told us
    model: str = ""
    started_at: datetime | None = None
    first_byte_at: datetime | None = None
    ended_at: datetime | None = None
    workspace: str = ""
    provider_reason: str | None = None  # what the provider's own diagnostics say of this request
    provider_saw_no_change: bool = False

    @property
    def markers(self) -> list[tuple[int, str]]:
        return self.prompt.effective_markers() if self.prompt else []

    @property
    def last_marked(self) -> int:
        """Return the index of the block up to which this request was cached; without markers in sight, its last block."""
        markers = self.markers
        if markers:
            return markers[-1][0]
        return len(self.prompt.blocks) - 1 if self.prompt else -1
