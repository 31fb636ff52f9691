"""Single records of the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from django.db.models import Count, Q, QuerySet, Sum

from memoryhub.common import errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.pricing import Modifiers, PriceBook
from memoryhub.prompt_cache.models import DailyUsage, Dimension, LedgerState, RecordState, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.queries.sums import Only, Span, UnpricedModel, narrowed
from memoryhub.workspaces.models import Workspace


class UnknownRequestError(errors.NotFound):
    slug = "unknown-request"
    title = "Unknown request"


def list_requests(workspace: Workspace, span: Span, only: Only | None = None) -> QuerySet[UsageRecord]:
    """Model responses of these days with what the doctor found, narrowed to one project, model, agent, user or session.

    Order and cut them where they are shown (occurred_at, id).
    """
    records = UsageRecord.objects.of(workspace).responses().between(span.start, span.end)
    return narrowed(records, only or {}).select_related("diagnosis")


def get_request(workspace: Workspace, record_id: int) -> UsageRecord:
    """One model response with what the doctor found; raises UnknownRequestError."""
    found = (
        UsageRecord.objects.of(workspace).responses().select_related("diagnosis__previous").filter(pk=record_id).first()
    )
    if found is None:
        raise UnknownRequestError("There is no such request in this workspace.")
    return found


@dataclass(frozen=True, slots=True)
class CostLine:
    """Tokens of one kind and what they cost. `rate` is pico-USD per token at list price, None for per-use charges."""

    kind: str
    count: int
    rate: int | None
    pico: int


@dataclass(frozen=True, slots=True)
class BilledPart:
    """A response, or an iteration that is billed beside it, line by line; `factor` is what its tier or region multiplies by."""

    record: UsageRecord
    factor: Fraction
    lines: list[CostLine]


TOKEN_KINDS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output")


def list_billed_parts(workspace: Workspace, record: UsageRecord) -> list[BilledPart]:
    """The response and what is billed beside it, with the price of each kind of token; without lines where nothing is priced."""
    book = get_price_book(workspace)
    parts = UsageRecord.objects.of(workspace).filter(message_id=record.message_id).order_by("part")
    return [_billed(part, book) for part in parts]


def _billed(record: UsageRecord, book: PriceBook) -> BilledPart:
    rates = book.rates(record.model, record.occurred_at, record.prompt_tokens)
    modifiers = Modifiers(record.service_tier, record.speed, record.inference_geo, record.region)
    factor = book.factor(record.model, modifiers)[0]
    if rates is None or record.state != RecordState.PRICED:
        return BilledPart(record, factor, [])
    lines = []
    for kind in TOKEN_KINDS:
        count, rate = getattr(record, f"{kind}_tokens"), getattr(rates, kind)
        if count:
            lines.append(CostLine(kind, count, rate, money.scaled(count * rate, factor.numerator, factor.denominator)))
    charges = record.cost_pico - sum(line.pico for line in lines)
    if record.web_search_requests and charges:
        lines.append(CostLine("web_search", record.web_search_requests, None, charges))
    return BilledPart(record, factor, lines)


def find_last_request(workspace: Workspace, *, session: str, until: datetime | None = None) -> UsageRecord | None:
    """Return the last response of a session's own chain up to a moment (default: of all), or None; one look at an index."""
    found = UsageRecord.objects.of(workspace).responses().filter(session=session, sidechain=False)
    if until is not None:
        found = found.filter(occurred_at__lte=until)
    return found.exclude(state=RecordState.EXCLUDED).order_by("-occurred_at", "-id").first()


def latest_record_at(workspace: Workspace) -> datetime | None:
    """When usage last arrived: "sent something? yes, three seconds ago"."""
    return LedgerState.objects.filter(workspace=workspace).values_list("last_arrival_at", flat=True).first()


def list_unpriced_models(workspace: Workspace) -> list[UnpricedModel]:
    """Every model of the ledger that has usage without a price, the largest first."""
    rows = (
        UsageRecord.objects.of(workspace)
        .unpriced()
        .filter(model__in=_unpriced_names(workspace))
        .values_list("model")
        .annotate(
            response_count=Count("id", filter=Q(part=0)),
            sum_input=Sum("input_tokens"),
            sum_write_5m=Sum("cache_write_5m_tokens"),
            sum_write_1h=Sum("cache_write_1h_tokens"),
            sum_read=Sum("cache_read_tokens"),
            sum_output=Sum("output_tokens"),
        )
    )
    found = [UnpricedModel(model, sum(tokens), requests) for model, requests, *tokens in rows]
    return sorted(found, key=lambda one: (-one.tokens, one.model))


def count_unpriced_models(workspace: Workspace) -> int:
    """How many models have usage without a price."""
    return len(_unpriced_names(workspace))


def _unpriced_names(workspace: Workspace) -> list[str]:
    """The models without a price, from the roll-ups: the records would have to be read model by model, all of them."""
    some = Q(requests__gt=0)
    for name in ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output"):
        some |= Q(**{f"{name}_tokens__gt": 0})
    rows = DailyUsage.objects.filter(some, workspace=workspace, dimension=Dimension.UNPRICED)
    return list(rows.order_by("value").values_list("value", flat=True).distinct())
