"""Figures that need single requests: writes that nobody read, and how long the first byte took.

Days that are over are summed up by a job (services/waste.py). Reading adds their sums to what the days since say; of those no
more than LIVE_REQUESTS are looked at, so that a page takes the same time however many requests there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import F, Q, Window
from django.db.models.functions import Coalesce, Lead

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.pricing import Modifiers, PriceBook
from memoryhub.prompt_cache.domain.unread import (
    LIFETIME_1H,
    ChainStep,
    UnreadWrite,
    median_of,
    unread_write,
    wait_class,
    waits,
)
from memoryhub.prompt_cache.models import DailyUsage, DailyWaste, Dimension, UsageRecord
from memoryhub.prompt_cache.models.ledger import UsageRecordQuerySet
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.queries.sums import Only, Span, Stretch, around, narrowed, rollup_zone, whole_days
from memoryhub.workspaces.models import Workspace

LIVE_REQUESTS = 1_500  # the newest of those that are in no day's sums yet


@dataclass(slots=True)
class Waste:
    """What the requests of some time wasted and waited."""

    requests: int = 0  # that wrote something which was never read
    tokens: int = 0  # never read
    premium_pico: int = 0  # paid for writing them
    hit_waits: Counter[int] = field(default_factory=Counter)  # requests by wait_class
    miss_waits: Counter[int] = field(default_factory=Counter)
    complete: bool = True  # False: only the newest requests were looked at

    @property
    def hit_seconds(self) -> float | None:
        """The median time to the first byte of requests that read the cache, to some per cent; None without any."""
        return median_of(self.hit_waits)

    @property
    def miss_seconds(self) -> float | None:
        return median_of(self.miss_waits)

    def add(self, other: Waste) -> None:
        self.requests += other.requests
        self.tokens += other.tokens
        self.premium_pico += other.premium_pico
        self.hit_waits.update(other.hit_waits)
        self.miss_waits.update(other.miss_waits)
        self.complete = self.complete and other.complete


def sum_waste(workspace: Workspace, span: Span, *, now: datetime, only: Only | None = None) -> Waste:
    """What was wasted in these days: from the days' sums where they hold, from the newest requests of the other days.

    Days of another zone than the sums' are the whole days inside them, and the hours before and behind those.
    """
    zone = rollup_zone(workspace)
    if only or not zone:
        return look_at(workspace, span, now=now, limit=LIVE_REQUESTS, only=only)
    total = Waste()
    if span.zone.key != zone:
        whole = whole_days(span, ZoneInfo(zone))
        if whole is None:
            return look_at(workspace, span, now=now, limit=LIVE_REQUESTS)
        for edge in around(span, whole):
            total.add(look_at(workspace, edge, now=now, limit=LIVE_REQUESTS // 2))
        span = whole
    counted = read_counted_days(workspace, span)
    for row in counted.values():
        total.add(_of_row(row))
    open_days = [day for day in busy_days(workspace, span) if day not in counted]
    if open_days:
        rest = Span(min(open_days), max(open_days), span.zone)
        total.add(look_at(workspace, rest, now=now, limit=LIVE_REQUESTS, without=set(counted)))
    return total


def _of_row(row: DailyWaste) -> Waste:
    return Waste(
        row.unread_requests,
        row.unread_tokens,
        row.unread_premium_pico,
        Counter({int(name): count for name, count in row.hit_waits.items()}),
        Counter({int(name): count for name, count in row.miss_waits.items()}),
    )


def busy_days(workspace: Workspace, span: Span | None = None) -> dict[date, tuple[int, int]]:
    """Requests and cost (pico-USD) by day, of days with priced usage, in the zone of the daily sums."""
    rows = DailyUsage.objects.filter(workspace=workspace, dimension=Dimension.ALL)
    if span is not None:
        rows = rows.filter(day__range=(span.first, span.last))
    found = {day: (requests, cost) for day, requests, cost in rows.values_list("day", "requests", "cost_pico")}
    return {day: sums for day, sums in found.items() if any(sums)}


def what_was_seen(days: dict[date, tuple[int, int]], day: date) -> str:
    """A day's mark: it changes whenever its records do, or those of the next day, which may read what it wrote."""
    return "/".join(
        f"{requests}:{cost}" for requests, cost in (days.get(day, (0, 0)), days.get(following(day), (0, 0)))
    )


def following(day: date) -> date:
    return day + timedelta(days=1)


def read_counted_days(workspace: Workspace, span: Span) -> dict[date, DailyWaste]:
    """The days whose sums still hold."""
    wider = Span(span.first, following(span.last), span.zone)
    days = busy_days(workspace, wider)
    rows = DailyWaste.objects.filter(workspace=workspace, day__range=(span.first, span.last))
    return {row.day: row for row in rows if row.seen == what_was_seen(days, row.day)}


def look_at(
    workspace: Workspace,
    span: Span | Stretch,
    *,
    now: datetime,
    limit: int | None = None,
    only: Only | None = None,
    without: set[date] | None = None,
) -> Waste:
    """Look at the requests of these days one by one, or at the newest `limit` of them; days in `without` are left out.

    A write late on the last day may be read on the next one, so the following hour is looked at too.
    """
    start, end, complete = _newest(_responses(workspace, span.start, span.end, only), span, limit)
    waste = Waste(complete=complete)
    left_out = without or set()
    _add_unread(waste, workspace, (start, end), span.zone, now, only, left_out)
    timed = _responses(workspace, start, end, only).filter(started_at__isnull=False, first_byte_at__isnull=False)
    rows = timed.values_list("occurred_at", "cache_read_tokens", "started_at", "first_byte_at")
    for occurred_at, read, started_at, first_byte_at in rows.iterator(chunk_size=5_000):
        if left_out and occurred_at.astimezone(span.zone).date() in left_out:
            continue
        counts = waste.hit_waits if read else waste.miss_waits
        if started_at and first_byte_at:
            counts.update(map(wait_class, waits([(started_at, first_byte_at)])))
    return waste


def _responses(workspace: Workspace, start: datetime, end: datetime, only: Only | None) -> UsageRecordQuerySet:
    return narrowed(UsageRecord.objects.of(workspace).priced().between(start, end), only or {}).responses()


def _newest(records: UsageRecordQuerySet, span: Span | Stretch, limit: int | None) -> tuple[datetime, datetime, bool]:
    """The part of a span that holds no more than the newest `limit` records, and whether that is all of it."""
    times = records.order_by("-occurred_at", "-id").values_list("occurred_at", flat=True)
    older: datetime | None = times[limit : limit + 1].first() if limit is not None else None
    if older is None:
        return span.start, span.end, True
    return older + timedelta(microseconds=1), span.end, False  # records of that very moment are left out with it


def _add_unread(
    waste: Waste,
    workspace: Workspace,
    times: tuple[datetime, datetime],
    zone: ZoneInfo,
    now: datetime,
    only: Only | None,
    left_out: set[date],
) -> None:
    start, end = times
    book = get_price_book(workspace)
    for row in _not_wholly_read(_responses(workspace, start, end + LIFETIME_1H, only)):
        at = row["occurred_at"]
        if at >= end or (left_out and at.astimezone(zone).date() in left_out):
            continue
        unread = unread_write(_step(row), now)
        if unread.write_5m or unread.write_1h:
            waste.requests += 1
            waste.tokens += unread.write_5m + unread.write_1h
            waste.premium_pico += _premium_pico(book, row, unread)


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


def _not_wholly_read(records: UsageRecordQuerySet) -> Iterable[dict[str, Any]]:
    """Requests that wrote, after which the next of the same chain and model read less than there was.

    The database leaves out the others. What they wrote is asked for beside what was read next: alone it would be asked
    before, and a next request that wrote nothing would be none.
    """
    following_request: dict[str, Any] = {
        "partition_by": [F("chain"), F("model")],
        "order_by": [F("occurred_at").asc(), F("id").asc()],
    }
    rows = records.exclude(chain="").annotate(
        begun_at=Coalesce("started_at", "occurred_at"),
        next_read=Window(Lead("cache_read_tokens"), **following_request),
    )
    there = F("cache_read_tokens") + F("cache_write_5m_tokens") + F("cache_write_1h_tokens")
    wrote = Q(cache_write_5m_tokens__gt=0) | Q(cache_write_1h_tokens__gt=0)
    rows = rows.filter(Q(wrote, next_read=None) | Q(wrote, next_read__lt=there))
    return rows.values(*_FIELDS, "begun_at", "next_read").iterator(chunk_size=5_000)


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
