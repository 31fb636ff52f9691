"""Five minutes or an hour: which lifetime is cheaper for a chain of requests.

Of a chain billed at 5m let f be the share of the written tokens that are rebuilds after a pause of 5 to 60 minutes. 5m costs
1.25 a written token, 1h costs 2 (1 - f) + r f, so an hour pays when f > 0.75 / (2 - r), r being the price of a read in input
tokens. A keep-alive ping every tau seconds pays for pauses up to tau (w / r - 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.exchange import Exchange, cached_tokens
from memoryhub.prompt_cache.domain.pricing import USUAL_READ, USUAL_WRITE_1H, USUAL_WRITE_5M

WRITE_RATIOS = {"5m": USUAL_WRITE_5M, "1h": USUAL_WRITE_1H}
KEEPALIVE_SECONDS = 240  # a ping a minute before the entry would expire


def break_even_reads(ttl: str, read_ratio: Fraction = USUAL_READ) -> int:
    """Return how many reads a written token needs to have paid for its premium."""
    return max(1, ceil((WRITE_RATIOS[ttl] - 1) / (1 - read_ratio)))


def hour_pays_above(read_ratio: Fraction = USUAL_READ) -> Fraction:
    """Return the share of rebuilt tokens above which an hour is cheaper."""
    return (WRITE_RATIOS["1h"] - WRITE_RATIOS["5m"]) / (WRITE_RATIOS["1h"] - read_ratio)


def keepalive_limit_seconds(read_ratio: Fraction = USUAL_READ, interval: int = KEEPALIVE_SECONDS) -> Fraction:
    """Return the longest pause that pings are cheaper for than one rebuild."""
    return interval * (WRITE_RATIOS["5m"] / read_ratio - 1) if read_ratio else Fraction(0)


@dataclass(frozen=True, slots=True)
class Pauses:
    """What the pauses of a chain would rebuild at five minutes."""

    gap_count: int
    rebuilt_tokens: int
    written_tokens: int

    @property
    def rebuilt_share(self) -> Fraction:
        return Fraction(self.rebuilt_tokens, self.written_tokens) if self.written_tokens else Fraction(0)


def measure_pauses(chain: Sequence[Exchange]) -> Pauses:
    """Return what a chain, in order of start, would write and rebuild if every marker were 5m."""
    timed = [item for item in chain if item.started_at is not None]
    sizes = [_cached_size(item) for item in timed]
    gaps = rebuilt = 0
    written = sizes[0] if sizes else 0
    for (before, after), (old, new) in zip(pairwise(timed), pairwise(sizes), strict=True):
        assert before.started_at is not None
        assert after.started_at is not None
        gap = (after.started_at - before.started_at).total_seconds()
        shared = min(old, new)
        gaps += 1
        if gap <= rulebook.TTL_SECONDS["5m"]:
            written += new - shared
            continue
        written += new
        if gap <= rulebook.TTL_SECONDS["1h"]:
            rebuilt += shared
    return Pauses(gaps, rebuilt, written)


def _cached_size(exchange: Exchange) -> int:
    if exchange.tokens is not None and exchange.tokens.prompt:
        return cached_tokens(exchange.tokens) or exchange.tokens.prompt
    return exchange.prompt.estimated_tokens if exchange.prompt else 0
