"""Figures that need single requests: writes that nobody read, and how long the first byte took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import F, Window
from django.db.models.functions import Coalesce, Lead

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.pricing import Modifiers, PriceBook
from memoryhub.prompt_cache.domain.unread import ChainStep, UnreadWrite, median, unread_write, waits
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.queries.sums import Only, Span, narrowed
from memoryhub.workspaces.models import Workspace

# These figures read every request of the range; above this they would cost more than the whole page.
MOST_REQUESTS = 30_000


@dataclass(frozen=True, slots=True)
class UnreadWrites:
    """Tokens that were written and never read before they expired, and the premium paid for them."""

    requests: int
    tokens: int
    premium_pico: int


@dataclass(frozen=True, slots=True)
class FirstByteTimes:
    """Median seconds to the first byte of requests that read the cache and of those that did not; None without any."""

    hit_seconds: float | None
    miss_seconds: float | None


def sum_unread_writes(
    workspace: Workspace, *, first: date, last: date, zone: ZoneInfo, now: datetime, only: Only | None = None
) -> UnreadWrites | None:
    """Unread writes of the days' requests, chain by chain; None where there are too many requests to look at each."""
    records = _responses(workspace, Span(first, last, zone), only)
    if _too_many(records):
        return None
    following: dict[str, Any] = {
        "partition_by": [F("chain"), F("model")],
        "order_by": [F("occurred_at").asc(), F("id").asc()],
    }
    rows = records.exclude(chain="").annotate(
        begun_at=Coalesce("started_at", "occurred_at"), next_read=Window(Lead("cache_read_tokens"), **following)
    )
    book = get_price_book(workspace)
    requests = tokens = premium = 0
    for row in rows.values(*_FIELDS, "begun_at", "next_read"):
        unread = unread_write(_step(row), now)
        if unread.write_5m or unread.write_1h:
            requests += 1
            tokens += unread.write_5m + unread.write_1h
            premium += _premium_pico(book, row, unread)
    return UnreadWrites(requests, tokens, premium)


_FIELDS = (
    "occurred_at",
    "model",
    "service_tier",
    "speed",
    "inference_geo",
    "region",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
)


def _responses(workspace: Workspace, span: Span, only: Only | None) -> Any:
    return narrowed(UsageRecord.objects.of(workspace).priced().between(span.start, span.end), only or {}).responses()


def _too_many(records: Any) -> bool:
    return len(records.values_list("pk")[: MOST_REQUESTS + 1]) > MOST_REQUESTS


def _step(row: dict[str, Any]) -> ChainStep:
    return ChainStep(
        started_at=row["begun_at"],
        read=row["cache_read_tokens"],
        write_5m=row["cache_write_5m_tokens"],
        write_1h=row["cache_write_1h_tokens"],
        next_read=row["next_read"],
    )


def _premium_pico(book: PriceBook, row: dict[str, Any], unread: UnreadWrite) -> int:
    """What the unread tokens cost more than plain input would have, at the request's own price."""
    prompt = (
        row["input_tokens"] + row["cache_read_tokens"] + row["cache_write_5m_tokens"] + row["cache_write_1h_tokens"]
    )
    rates = book.rates(row["model"], row["occurred_at"], prompt)
    if rates is None:
        return 0
    modifiers = Modifiers(row["service_tier"], row["speed"], row["inference_geo"], row["region"])
    factor, _ = book.factor(row["model"], modifiers)
    extra = (rates.cache_write_5m - rates.input) * unread.write_5m + (
        rates.cache_write_1h - rates.input
    ) * unread.write_1h
    return money.scaled(extra, factor.numerator, factor.denominator)


def first_byte_times(
    workspace: Workspace, *, first: date, last: date, zone: ZoneInfo, only: Only | None = None
) -> FirstByteTimes | None:
    """How much sooner an answer begins that reads the cache; None where there are too many requests to look at each."""
    records = _responses(workspace, Span(first, last, zone), only).exclude(started_at=None).exclude(first_byte_at=None)
    if _too_many(records):
        return None
    hits = records.filter(cache_read_tokens__gt=0).values_list("started_at", "first_byte_at")
    misses = records.filter(cache_read_tokens=0).values_list("started_at", "first_byte_at")
    return FirstByteTimes(median(waits(hits)), median(waits(misses)))
