"""Shapes of the ledger: usage in, what it cost out, the report, the price book."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict
from pydantic.config import JsonDict

from memoryhub.api.schemas.base import InShape
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.queries import ListedPrice, UnpricedModel
from memoryhub.prompt_cache.services.doctor import SentRequest
from memoryhub.prompt_cache.services.price_book import PriceDraft
from memoryhub.prompt_cache.services.repricing import Repricing
from memoryhub.prompt_cache.services.usage import BookedResponse, RecordedUsage

MOST_REPORTS = 1_000


def _plausible(moment: datetime) -> datetime:
    """UTC, and near enough to now that every time zone can show it; a time without a zone is UTC."""
    if not 1970 <= moment.year <= 2200:
        raise ValueError("lies outside the years 1970 to 2200")
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_plausible)]


_MISSING = BeforeValidator(lambda value: "" if value is None else value)
Text200 = Annotated[str, _MISSING, Field(max_length=200)]  # null is "not said"
Text500 = Annotated[str, _MISSING, Field(max_length=500)]


_USAGE_EXAMPLE: JsonDict = {
    "message_id": "msg_1",
    "model": "claude-opus-5-5",
    "started_at": "2026-11-10T10:00:00Z",
    "session": "s1",
    "agent": "main",
    "project": "web",
    "user": "ana",
    "usage": {
        "input_tokens": 3,
        "output_tokens": 5000,
        "cache_creation_input_tokens": 10000,
        "cache_read_input_tokens": 20000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 10000},
    },
}
_PRICE_EXAMPLE: JsonDict = {"model": "claude-opus-9", "input_usd": "4", "output_usd": "20", "valid_from": "2026-11-01"}


class UsageIn(InShape):
    """One model response. `message_id` (or else `request_id`) names it; sending it again changes nothing."""

    model_config = ConfigDict(json_schema_extra={"example": _USAGE_EXAMPLE})

    message_id: Text200 = ""
    request_id: Text200 = ""
    model: str = Field(min_length=1, max_length=200)
    started_at: Moment | None = None
    first_byte_at: Moment | None = None
    ended_at: Moment | None = None
    session: Text200 = ""
    agent: Text200 = ""
    project: Text500 = ""
    user: Text200 = ""
    convention: Literal["anthropic", "inclusive"] | None = Field(
        None,
        description="anthropic: input_tokens leaves the cached tokens out; inclusive (OpenTelemetry, OpenAI, LiteLLM): it counts "
        "them too. Left out, it is recognised by the field names.",
    )
    usage: dict[str, Any]
    diagnostics: dict[str, Any] | None = None
    request: dict[str, Any] | None = Field(
        None, description="The request's body, for the doctor; only hashes are kept."
    )
    source: Literal["rest", "track"] = "rest"
    cut: bool = Field(False, description="The stream ended before the response did, so its usage is partial.")

    def report(self, bound: dict[str, str]) -> UsageReport:
        """As the ledger takes it, with what the key is bound to filled in."""
        values = {name: getattr(self, name) for name in UsageReport.__slots__ if hasattr(self, name)}
        return UsageReport(**{**values, **bound})

    def sent_request(self) -> SentRequest | None:
        """The request behind the response, where it came along."""
        if self.request is None:
            return None
        no_change = "diagnostics" in self.model_fields_set and self.diagnostics is None
        return SentRequest(self.message_id or self.request_id, self.request, no_change)


class BookedOut(Schema):
    message_id: str
    cost_usd: str | None
    net_saving_usd: str | None
    unpriced: bool
    flags: list[str]

    @staticmethod
    def of(booked: BookedResponse) -> "BookedOut":
        """Without a price, or without numbers that can be right, there is no amount; zero would be a lie."""
        return BookedOut(
            message_id=booked.message_id,
            cost_usd=money.usd_text(booked.cost_pico) if booked.has_amount else None,
            net_saving_usd=money.usd_text(booked.net_saving_pico) if booked.has_amount else None,
            unpriced=booked.unpriced,
            flags=booked.flags,
        )


class RecordedOut(Schema):
    created: int
    updated: int
    unchanged: int
    items: list[BookedOut]

    @staticmethod
    def of(recorded: RecordedUsage, keys: list[str]) -> "RecordedOut":
        return RecordedOut(
            created=recorded.created,
            updated=recorded.updated,
            unchanged=recorded.unchanged,
            items=[BookedOut.of(recorded.responses[key]) for key in keys],
        )


class UnpricedOut(Schema):
    model: str
    tokens: int
    requests: int

    @staticmethod
    def of(unpriced: UnpricedModel) -> "UnpricedOut":
        return UnpricedOut(model=unpriced.model, tokens=unpriced.tokens, requests=unpriced.requests)


class ReportOut(Schema):
    """Only the grouped keys are present in a row. Amounts are decimal text; `hit_rate` is null where there was no prompt."""

    rows: list[dict[str, Any]]
    totals: dict[str, Any]
    unpriced: list[UnpricedOut]
    excluded: int
    tz: str
    price_book_version: str


def _decimal(value: Any) -> Any:
    """A JSON number becomes the decimal that was written, not its binary neighbour."""
    return Decimal(repr(value)) if isinstance(value, float) else value


Usd = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0, le=100_000, max_digits=12, decimal_places=6)]


class PriceIn(InShape):
    """USD per million tokens. Cache prices that are left out follow the usual ratios: 1.25, 2 and 0.1 times the input."""

    model_config = ConfigDict(json_schema_extra={"example": _PRICE_EXAMPLE})

    model: str = Field(min_length=1, max_length=200)
    input_usd: Usd
    output_usd: Usd
    cache_write_5m_usd: Usd | None = None
    cache_write_1h_usd: Usd | None = None
    cache_read_usd: Usd | None = None
    valid_from: date | None = Field(None, description="A UTC day; left out, the price always held.")
    valid_until: date | None = Field(None, description="The last UTC day, inclusive.")
    prompt_tokens_above: int = Field(0, ge=0, le=10**9, description="For requests whose whole prompt is larger.")
    note: str = Field("", max_length=300)

    def draft(self) -> PriceDraft:
        return PriceDraft(**self.dict())


class PricesIn(InShape):
    items: list[PriceIn] = Field(min_length=1, max_length=200)
    dry_run: bool = False
    reason: str = Field("", max_length=500)


class PriceOut(Schema):
    model: str
    input_usd: str
    output_usd: str
    cache_write_5m_usd: str
    cache_write_1h_usd: str
    cache_read_usd: str
    valid_from: date | None
    valid_until: date | None
    prompt_tokens_above: int
    source: str
    note: str

    @staticmethod
    def of(listed: ListedPrice) -> "PriceOut":
        entry, rates = listed.entry, listed.entry.rates
        return PriceOut(
            model=entry.model,
            input_usd=money.usd_per_million_text(rates.input),
            output_usd=money.usd_per_million_text(rates.output),
            cache_write_5m_usd=money.usd_per_million_text(rates.cache_write_5m),
            cache_write_1h_usd=money.usd_per_million_text(rates.cache_write_1h),
            cache_read_usd=money.usd_per_million_text(rates.cache_read),
            valid_from=entry.valid_from,
            valid_until=entry.valid_until,
            prompt_tokens_above=entry.prompt_tokens_above,
            source=entry.source,
            note=listed.note,
        )


class PriceBookOut(Schema):
    price_book_version: str
    items: list[PriceOut]
    unpriced: list[UnpricedOut]


class RepricedOut(Schema):
    dry_run: bool
    price_book_version: str
    records: int
    newly_priced: int
    cost_before_usd: str
    cost_after_usd: str
    later: int = Field(description="Records that a job still prices; the amounts are those of the newest ones.")
    change_set: str | None

    @staticmethod
    def of(repricing: Repricing, *, version: str, dry_run: bool) -> "RepricedOut":
        return RepricedOut(
            dry_run=dry_run,
            price_book_version=version,
            records=repricing.records,
            newly_priced=repricing.newly_priced,
            cost_before_usd=money.usd_text(repricing.cost_before_pico),
            cost_after_usd=money.usd_text(repricing.cost_after_pico),
            later=repricing.later,
            change_set=repricing.change_set.public_id if repricing.change_set else None,
        )
