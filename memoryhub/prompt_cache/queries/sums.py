"""Sums of usage, from the roll-ups where they hold the answer and from the records, exactly, everywhere else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from operator import add
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Case, Count, F, Q, Sum, Value, When

from memoryhub.common import errors
from memoryhub.common.plain_query import fetch_plain
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.models import DailyUsage, Dimension, LedgerState, UsageRecord
from memoryhub.prompt_cache.models.ledger import UsageRecordQuerySet
from memoryhub.workspaces.models import Workspace

GROUPS = ("day", "project", "model", "agent", "user", "session")
Only = Mapping[str, str]  # dimension -> the one value wanted
_NAMES = ("project", "model", "agent", "user", "session")
_ROLLED_UP = set(_NAMES)
_TOKENS = ("input_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "cache_read_tokens", "output_tokens")
SUMMED = ("requests", *_TOKENS, "cost_pico", "nocache_pico")


class UnknownGroupError(errors.Invalid):
    slug = "unknown-group"
    title = "A report can't be grouped like this"


class BadRangeError(errors.Invalid):
    slug = "bad-range"
    title = "This is no range of days"


@dataclass(slots=True)
class Sums:
    """Requests, tokens and money added up. Money is whole pico-USD inside and Decimal USD outside."""

    requests: int = 0
    input_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0
    output_tokens: int = 0
    cost_pico: int = 0
    nocache_pico: int = 0

    def add(self, other: Sums) -> None:
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens + self.cache_read_tokens

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.output_tokens

    @property
    def hit_rate(self) -> float | None:
        """Token-weighted: read tokens over all prompt tokens; None where there was no prompt."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else None

    @property
    def net_saving_pico(self) -> int:
        return self.nocache_pico - self.cost_pico

    @property
    def cost_usd(self) -> Decimal:
        return money.usd(self.cost_pico)

    @property
    def nocache_usd(self) -> Decimal:
        return money.usd(self.nocache_pico)

    @property
    def net_saving_usd(self) -> Decimal:
        return money.usd(self.net_saving_pico)

    @property
    def is_empty(self) -> bool:
        return not self.requests and not self.tokens and not self.cost_pico and not self.nocache_pico


@dataclass(frozen=True, slots=True)
class Span:
    """Days of a time zone, both ends inclusive."""

    first: date
    last: date
    zone: ZoneInfo

    def days(self) -> Iterator[tuple[date, datetime, datetime]]:
        """Each day with its first moment and the next day's, in UTC. DST makes some of them 23 or 25 hours long."""
        day, start = self.first, start_of_day(self.first, self.zone)
        while day <= self.last:
            following = day + timedelta(days=1)
            end = start_of_day(following, self.zone)
            yield day, start, end
            day, start = following, end

    @property
    def start(self) -> datetime:
        return start_of_day(self.first, self.zone)

    @property
    def end(self) -> datetime:
        return start_of_day(self.last + timedelta(days=1), self.zone)

    @property
    def length(self) -> int:
        return (self.last - self.first).days + 1

    def previous(self) -> Span:
        """As many days, directly before."""
        return Span(self.first - timedelta(days=self.length), self.first - timedelta(days=1), self.zone)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time inside days of a zone."""

    start: datetime
    end: datetime
    zone: ZoneInfo


Read = dict[tuple[Stretch, tuple[str, ...]], list[tuple[Any, ...]]]  # sums by names, of the hours around whole days


def around(span: Span, whole: Span) -> list[Stretch]:
    """What a span holds before and behind the whole days of another zone inside it; less than a day each."""
    ends = ((span.start, whole.start), (whole.end, span.end))
    return [Stretch(start, end, span.zone) for start, end in ends if start < end]


def days_with(records: UsageRecordQuerySet, span: Span) -> Iterator[tuple[date, datetime, datetime]]:
    """The days of a span that hold any of these records, as `Span.days` gives them; years without any cost nothing."""
    start, end = span.start, span.end
    times = records.order_by("occurred_at", "id").values_list("occurred_at", flat=True)
    while (found := times.filter(occurred_at__gte=start, occurred_at__lt=end).first()) is not None:
        day = found.astimezone(span.zone).date()
        yield from Span(day, day, span.zone).days()
        start = start_of_day(day + timedelta(days=1), span.zone)


def start_of_day(day: date, zone: ZoneInfo) -> datetime:
    """A local day's first moment. Where the clock jumps over midnight it is the moment of the jump."""
    return datetime.combine(day, time.min, tzinfo=zone).astimezone(UTC)


def narrowed(records: UsageRecordQuerySet, only: Only) -> UsageRecordQuerySet:
    """The records of one project, model, agent, user or session."""
    check_groups(["day", *only])
    return records.filter(**{name: value for name, value in only.items() if name != "day"})


def rollup_zone(workspace: Workspace) -> str:
    """The zone that the daily sums are kept in; "" where there are none to trust."""
    return LedgerState.objects.filter(workspace=workspace).values_list("time_zone", flat=True).first() or ""


def resolve_span(workspace: Workspace, first: date | None, last: date | None, zone: ZoneInfo) -> Span | None:
    """The days asked for, cut to those that hold usage; open ends reach as far as the ledger. None where nothing is left."""
    if first and last and first > last:
        raise BadRangeError("The first day is after the last.")
    times = UsageRecord.objects.of(workspace).values_list("occurred_at", flat=True)
    held = [times.order_by("occurred_at", "id").first(), times.order_by("-occurred_at", "-id").first()]
    if held[0] is None or held[1] is None:
        return None
    earliest, latest = (moment.astimezone(zone).date() for moment in held if moment)
    first, last = max(first or earliest, earliest), min(last or latest, latest)
    return Span(first, last, zone) if first <= last else None


def check_groups(group_by: Sequence[str]) -> None:
    """Raise UnknownGroupError unless a report can be grouped by all of these."""
    unknown = [name for name in group_by if name not in GROUPS]
    if unknown or not group_by:
        raise UnknownGroupError(f"group_by takes {', '.join(GROUPS)}; got {', '.join(unknown)[:80] or 'nothing'}.")


def sum_usage(
    workspace: Workspace, span: Span, group_by: Sequence[str], only: Only | None = None, *, read: Read | None = None
) -> dict[tuple[Any, ...], Sums]:
    """Priced usage by group, keyed by the values in the order of `group_by` (days as dates).

    `only` narrows it to one project, model, agent, user or session. Who asks for several groups of the same span gives
    each call the same `read`, an empty dict: what had to be read from the records is read once.
    """
    check_groups(group_by)
    others = [name for name in group_by if name != "day"]
    rolled_up = not only and len(others) <= 1 and set(others) <= _ROLLED_UP
    zone = rollup_zone(workspace) if rolled_up else ""
    if rolled_up and span.zone.key == zone:
        return _from_rollups(workspace, span, group_by, others)
    if zone and not others and (days := _from_quarters(workspace, span)) is not None:
        return days
    if zone and "day" not in group_by and (whole := whole_days(span, ZoneInfo(zone))):
        return _from_rollups_and_edges(workspace, span, whole, others, {} if read is None else read)
    return _from_records(workspace, span, group_by, others, only or {})


def quarter_of(moment: datetime) -> tuple[date, str]:
    """The quarter of an hour that holds a moment: its day in UTC, and its beginning there, as `14:45`."""
    at = moment.astimezone(UTC)
    return at.date(), f"{at.hour:02}:{at.minute - at.minute % 15:02}"


def _from_quarters(workspace: Workspace, span: Span) -> dict[tuple[Any, ...], Sums] | None:
    """The days of any zone, added up from quarters of an hour; None where one of them does not begin with a quarter.

    Every zone's offset has been whole quarters since 1972.
    """
    days = list(span.days())
    ends = [end for _, _, end in days]
    if any(moment.minute % 15 or moment.second for moment in (span.start, *ends)):
        return None
    starts = [quarter_of(start) for _, start, _ in days]
    last = quarter_of(span.end)
    # A UTC day is cut where a day of the zone begins, so the database adds up two or three pieces of it, not 96.
    cuts = sorted({beginning for _, beginning in (*starts, last)})
    piece = sum((Case(When(value__gte=cut, then=1), default=0) for cut in cuts), start=Value(0))
    rows = (
        DailyUsage.objects.filter(workspace=workspace, dimension=Dimension.QUARTER, day__range=(starts[0][0], last[0]))
        .values_list("day", piece)
        .annotate(**_sums_of_sums())
    )
    sums = [[0] * len(SUMMED) for _ in days]
    for day, passed, *amounts in rows:
        at = (day, cuts[passed - 1] if passed else "00:00")
        if at < last and (place := bisect_right(starts, at) - 1) >= 0:
            sums[place] = list(map(add, sums[place], _whole(amounts)))
    return _without_empty({(day,): Sums(*amounts) for (day, _, _), amounts in zip(days, sums, strict=True)})


def whole_days(span: Span, zone: ZoneInfo) -> Span | None:
    """The days of one zone that lie wholly inside a span of another."""
    first = span.start.astimezone(zone).date()
    if start_of_day(first, zone) < span.start:
        first += timedelta(days=1)
    last = span.end.astimezone(zone).date() - timedelta(days=1)
    return Span(first, last, zone) if first <= last else None


def _from_rollups_and_edges(
    workspace: Workspace, span: Span, whole: Span, others: list[str], read: Read
) -> dict[tuple[Any, ...], Sums]:
    """What doesn't ask for days: the roll-ups of the days inside, and the records of the hours before and behind them."""
    groups = _from_rollups(workspace, whole, others, others)
    # Sessions are many: they are read alone, and by nobody who doesn't ask for them.
    names = ("session",) if "session" in others else _NAMES[:-1]
    places = [names.index(name) for name in others]
    found: dict[tuple[Any, ...], list[int]] = {}
    for edge in around(span, whole):
        if (edge, names) not in read:
            records = UsageRecord.objects.of(workspace).priced().between(edge.start, edge.end)
            rows = fetch_plain(records.values_list(*names).annotate(**aggregates()))
            read[edge, names] = [(row, [int(amount or 0) for amount in row[len(names) :]]) for row in rows]
        for row, amounts in read[edge, names]:
            add_amounts(found, tuple([row[place] for place in places]), amounts)
    for key, sums in found.items():
        _add(groups, key, Sums(*sums))
    return _without_empty(groups)


def _from_rollups(
    workspace: Workspace, span: Span, group_by: Sequence[str], others: list[str]
) -> dict[tuple[Any, ...], Sums]:
    dimension = Dimension(others[0]) if others else Dimension.ALL
    rows = DailyUsage.objects.filter(workspace=workspace, dimension=dimension, day__range=(span.first, span.last))
    if "day" not in group_by:
        by_value = rows.values_list("value").annotate(**_sums_of_sums())
        return _without_empty({(value,) * len(group_by): Sums(*_whole(sums)) for value, *sums in fetch_plain(by_value)})
    groups: dict[tuple[Any, ...], Sums] = {}
    for day, value, *sums in rows.values_list("day", "value", *SUMMED).iterator(chunk_size=5000):
        key = tuple(day if name == "day" else value for name in group_by)
        _add(groups, key, Sums(*sums))
    return _without_empty(groups)


def _from_records(
    workspace: Workspace, span: Span, group_by: Sequence[str], others: list[str], only: Only
) -> dict[tuple[Any, ...], Sums]:
    """One indexed range per local day: exact under every DST rule, and no database has to know time zones."""
    groups: dict[tuple[Any, ...], Sums] = {}
    records = narrowed(UsageRecord.objects.of(workspace).priced(), only)
    for day, start, end in days_with(records, span):
        sums = aggregates()
        found = records.between(start, end)
        rows = found.values_list(*others).annotate(**sums) if others else [tuple(found.aggregate(**sums).values())]
        for row in rows:
            values = dict(zip(others, row, strict=False))
            key = tuple(day if name == "day" else values[name] for name in group_by)
            _add(groups, key, Sums(*(amount or 0 for amount in row[len(others) :])))
    return _without_empty(groups)


_MONEY = ("cost_pico", "nocache_pico")
_LOW_BITS = 32


def _sums_of_sums() -> dict[str, Any]:
    """What the database adds up of daily sums. A day's money may fill its column, so two days' would not fit into it:
    money is added up in two halves.
    """
    plain = {f"sum_{name}": Sum(name) for name in SUMMED if name not in _MONEY}
    high = {f"high_{name}": Sum(F(name).bitrightshift(_LOW_BITS)) for name in _MONEY}
    low = {f"low_{name}": Sum(F(name).bitand((1 << _LOW_BITS) - 1)) for name in _MONEY}
    return {**plain, **high, **low}


def _whole(amounts: Sequence[Any]) -> list[int]:
    """The amounts of `_sums_of_sums` in the order of SUMMED."""
    *plain, cost_high, nocache_high, cost_low, nocache_low = map(int, amounts)
    return [*plain, (cost_high << _LOW_BITS) + cost_low, (nocache_high << _LOW_BITS) + nocache_low]


def aggregates() -> dict[str, Any]:
    """What the database adds up of records, in the order of the sums."""
    return {
        "sum_requests": Count("id", filter=Q(part=0)),
        **{f"sum_{name}": Sum(name) for name in SUMMED[1:]},
    }


def add_amounts(found: dict[Any, list[int]], key: Any, amounts: Sequence[int]) -> None:
    """Add amounts, in the order of the sums, to those of a key."""
    sums = found.get(key)
    found[key] = list(amounts) if sums is None else list(map(add, sums, amounts))


def _add(groups: dict[tuple[Any, ...], Sums], key: tuple[Any, ...], sums: Sums) -> None:
    known = groups.get(key)
    if known is None:
        groups[key] = sums
    else:
        known.add(sums)


def _without_empty(groups: dict[tuple[Any, ...], Sums]) -> dict[tuple[Any, ...], Sums]:
    return {key: sums for key, sums in groups.items() if not sums.is_empty}


def total(groups: dict[tuple[Any, ...], Sums]) -> Sums:
    sums = Sums()
    for one in groups.values():
        sums.add(one)
    return sums


@dataclass(frozen=True, slots=True)
class UnpricedModel:
    """A model that the price book does not know: tokens, and no dollars."""

    model: str
    tokens: int
    requests: int


def sum_unpriced(workspace: Workspace, span: Span, only: Only | None = None) -> list[UnpricedModel]:
    """Usage without a price, by model, the largest first."""
    if not only and span.zone.key == rollup_zone(workspace):
        kept = DailyUsage.objects.filter(
            workspace=workspace, dimension=Dimension.UNPRICED, day__range=(span.first, span.last)
        )
        rows = list(kept.values_list("value").annotate(Sum("requests"), *(Sum(name) for name in _TOKENS)))
    else:
        records = narrowed(UsageRecord.objects.of(workspace).unpriced().between(span.start, span.end), only or {})
        counted = records.values_list("model")
        sums = {f"sum_{name}": Sum(name) for name in _TOKENS}
        rows = list(counted.annotate(response_count=Count("id", filter=Q(part=0)), **sums))
    found = [UnpricedModel(model, sum(tokens), requests) for model, requests, *tokens in rows]
    return sorted((one for one in found if one.tokens or one.requests), key=lambda one: (-one.tokens, one.model))


def count_excluded(workspace: Workspace, span: Span, only: Only | None = None) -> int:
    """Records of these days that can't be right and stand in no sum."""
    return narrowed(UsageRecord.objects.of(workspace).excluded().between(span.start, span.end), only or {}).count()
