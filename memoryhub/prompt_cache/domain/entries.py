"""From what is known about a response to what the ledger books: counters, state, money, flags."""

from __future__ import annotations

from dataclasses import dataclass

from memoryhub.prompt_cache.domain.pricing import (
    HIGHEST_PLAUSIBLE_COST_PICO,
    Cost,
    Modifiers,
    PriceBook,
    Tokens,
)
from memoryhub.prompt_cache.domain.sightings import Sighting
from memoryhub.prompt_cache.domain.usage import EXCLUDING_FLAGS, IMPLAUSIBLE

PRICED, UNPRICED, EXCLUDED = 0, 1, 2
CUT_STREAM = "cut_stream"  # the response failed on its way; its usage is partial


@dataclass(frozen=True, slots=True)
class Entry:
    """One booked part of a response."""

    state: int
    tokens: Tokens
    cost_pico: int
    nocache_pico: int
    flags: tuple[str, ...]


def book_entry(seen: Sighting, book: PriceBook) -> Entry:
    """Book a sighting: what can't be right is left out of sums, what has no price has no dollars."""
    tokens = seen.stated.tokens()
    flags = seen.stated.flags(seen.convention) + ((CUT_STREAM,) if seen.cut else ())
    if not EXCLUDING_FLAGS.isdisjoint(flags):
        return Entry(EXCLUDED, tokens, 0, 0, flags)
    cost = _price(seen, tokens, book)
    if cost.unpriced:
        return Entry(UNPRICED, tokens, 0, 0, flags)
    if max(cost.cost_pico, cost.nocache_pico) > HIGHEST_PLAUSIBLE_COST_PICO:
        return Entry(EXCLUDED, tokens, 0, 0, (*flags, IMPLAUSIBLE))
    return Entry(PRICED, tokens, cost.cost_pico, cost.nocache_pico, flags + cost.flags)


def _price(seen: Sighting, tokens: Tokens, book: PriceBook) -> Cost:
    modifiers = Modifiers(seen.service_tier, seen.speed, seen.inference_geo, seen.region)
    return book.price(seen.model, seen.occurred_at, tokens, modifiers, seen.stated.web_searches or 0)
