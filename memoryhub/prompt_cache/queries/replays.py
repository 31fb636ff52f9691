"""Replaying a recorded session, or requests that are sent along, under the caching plans."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum

from memoryhub.common import errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.blocks import Prompt
from memoryhub.prompt_cache.domain.exchange import Exchange, Tariff, find_tariff
from memoryhub.prompt_cache.domain.exchange_body import read_exchange
from memoryhub.prompt_cache.domain.fingerprint import unpack
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.pricing import Modifiers, Tokens
from memoryhub.prompt_cache.domain.request_body import BadRequestBody
from memoryhub.prompt_cache.domain.simulator import (
    Shape,
    Simulation,
    UsageOnly,
    known_ends,
    shape_of,
    simulate,
    usage_shapes,
)
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.models.ledger import RecordState
from memoryhub.prompt_cache.models.requests import RequestFingerprint
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.queries.checks import as_invalid
from memoryhub.workspaces.models import Workspace

RECENT_RECORDS = 2_000  # among which recent sessions are looked for
MOST_RECORDS = 3_000  # of one session; the newest are replayed


class UnknownSessionError(errors.NotFound):
    slug = "unknown-session"
    title = "No usage of this session"


class NothingToReplayError(errors.Invalid):
    slug = "nothing-to-replay"
    title = "Name a session or send requests"


@dataclass(frozen=True, slots=True)
class SessionReplay:
    """The plans of one session, and what they rest on: whole requests, usage alone, or some of each."""

    simulation: Simulation
    requests: int
    basis: str
    truncated: bool = False


def replay_session(
    workspace: Workspace, *, session: str, plans: Sequence[str], only: dict[str, str] | None = None
) -> SessionReplay:
    """Replay a session's records; raises UnknownSessionError where the ledger has none of it."""
    records = list(
        UsageRecord.objects.of(workspace)
        .responses()
        .filter(session=session, **(only or {}))
        .exclude(state=RecordState.EXCLUDED)
        .order_by("-occurred_at", "-id")[: MOST_RECORDS + 1]
    )
    if not records:
        raise UnknownSessionError(f"The ledger has no usage of a session {session[:80]!r}.")
    truncated = len(records) > MOST_RECORDS
    records = records[:MOST_RECORDS][::-1]
    prompts = stored_prompts(record.pk for record in records)
    shapes, with_bodies = shapes_of_records(records, prompts)
    basis = "requests" if with_bodies == len(records) else "mixed" if with_bodies else "usage"
    return SessionReplay(simulate(shapes, plans, tariff_finder(workspace)), len(records), basis, truncated)


def replay_requests(workspace: Workspace, *, requests: Sequence[Any], plans: Sequence[str]) -> SessionReplay:
    """Replay requests that the caller sends along, each with its usage and start."""
    read = [_read_timed(given, f"requests[{index}]") for index, given in enumerate(requests)]
    known = known_ends((prompt, exchange.tokens) for prompt, exchange, _, _ in read)
    shapes = [
        shape_of(
            prompt,
            started_at=started_at,
            first_byte_at=exchange.first_byte_at or exchange.ended_at,
            billed=exchange.tokens,
            model=normalise_model(exchange.model).name,
            modifiers=modifiers,
            known=known,
        )
        for prompt, exchange, modifiers, started_at in read
    ]
    return SessionReplay(simulate(shapes, plans, tariff_finder(workspace)), len(shapes), "requests")


def _read_timed(given: Any, where: str) -> tuple[Prompt, Exchange, Modifiers, datetime]:
    try:
        exchange, modifiers = read_exchange(given, where)
        if exchange.prompt is None:
            raise BadRequestBody(f"{where}.request", "a Messages request body")
        if exchange.started_at is None:
            raise BadRequestBody(f"{where}.started_at", "present")
    except BadRequestBody as error:
        raise as_invalid(error) from error
    return exchange.prompt, exchange, modifiers, exchange.started_at


def stored_prompts(record_ids: Iterable[int]) -> dict[int, Prompt]:
    """Return what is stored of the requests behind these records, by record."""
    stored = RequestFingerprint.objects.filter(record_id__in=list(record_ids)).values_list("record_id", "packed")
    return {record_id: unpack(bytes(packed)) for record_id, packed in stored}


def shapes_of_records(records: Sequence[UsageRecord], prompts: dict[int, Prompt]) -> tuple[list[Shape], int]:
    """Return the records' shapes and how many rest on a stored request; a chain with a gap is replayed by usage alone."""
    chains: dict[str, list[UsageRecord]] = defaultdict(list)
    for record in records:
        chains[record.chain].append(record)
    shapes: list[Shape] = []
    with_bodies = 0
    for chain, members in chains.items():
        if all(record.pk in prompts for record in members):
            known = known_ends((prompts[record.pk], tokens_of(record)) for record in members)
            shapes += [_shape_of_record(record, prompts[record.pk], known) for record in members]
            with_bodies += len(members)
        else:
            shapes += usage_shapes([_usage_of_record(record) for record in members], chain or f"{id(members)}")
    return shapes, with_bodies


def _shape_of_record(record: UsageRecord, prompt: Prompt, known: Mapping[bytes, int]) -> Shape:
    return shape_of(
        prompt,
        started_at=record.started_at or record.occurred_at,
        first_byte_at=record.first_byte_at or record.ended_at,
        billed=tokens_of(record),
        model=record.model,
        modifiers=modifiers_of(record),
        chain=record.chain,
        known=known,
    )


def _usage_of_record(record: UsageRecord) -> UsageOnly:
    return UsageOnly(
        tokens_of(record),
        record.started_at or record.occurred_at,
        record.model,
        record.first_byte_at or record.ended_at,
        modifiers_of(record),
    )


def tokens_of(record: UsageRecord) -> Tokens:
    return Tokens(
        record.input_tokens,
        record.cache_write_5m_tokens,
        record.cache_write_1h_tokens,
        record.cache_read_tokens,
        record.output_tokens,
    )


def modifiers_of(record: UsageRecord) -> Modifiers:
    return Modifiers(record.service_tier, record.speed, record.inference_geo, record.region)


def tariff_finder(workspace: Workspace) -> Callable[[Shape, int], Tariff | None]:
    """Return the look-up of a shape's price; the book is read once, and days and sizes that repeat are remembered."""
    book = get_price_book(workspace)
    known: dict[tuple[Any, ...], Tariff | None] = {}
    tiers = sorted({entry.prompt_tokens_above for entry in book.entries})

    def find(shape: Shape, prompt_tokens: int) -> Tariff | None:
        size_class = sum(1 for above in tiers if prompt_tokens > above)
        key = (shape.model, shape.at.date(), size_class, shape.modifiers)
        if key not in known:
            known[key] = find_tariff(book, shape.model, shape.at, prompt_tokens, shape.modifiers)
        return known[key]

    return find


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session that can be replayed."""

    session: str
    requests: int
    cost_pico: int

    @property
    def usd(self) -> Decimal:
        return money.usd(self.cost_pico)


def recent_sessions(workspace: Workspace, *, limit: int) -> list[SessionRow]:
    """The sessions of the latest records, the dearest first."""
    latest = UsageRecord.objects.of(workspace).responses().exclude(session="").order_by("-occurred_at", "-id")
    names = list(dict.fromkeys(latest.values_list("session", flat=True)[:RECENT_RECORDS]))[:limit]
    rows = (
        UsageRecord.objects.of(workspace)
        .filter(session__in=names, part=0)
        .values_list("session")
        .annotate(requests=Count("id"), pico=Sum("cost_pico"))
    )
    found = [SessionRow(session, requests, pico or 0) for session, requests, pico in rows]
    return sorted(found, key=lambda row: (-row.cost_pico, row.session))
