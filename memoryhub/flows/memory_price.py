"""What a memory costs in the prompt cache: where requests carry it, and which cache misses began there.

A rendered memory has marks with its id and version, so the bodies of requests tell which memories they carried. Bodies
are kept for an hour at the most; while they are, the marks in them are noted. A miss whose first difference lies in the
block that carries a memory is a break that the memory took part in: the same memory behind the conversation's tail would
have cost its own tokens only.

Requests whose body was never sent to the hub, or was let go, can't be read: what the memory cost there is not counted, and
how many there were in the sessions concerned is said beside the price.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Exists, Max, OuterRef

from memoryhub.common.tokens import estimate_tokens
from memoryhub.long_term_memory.domain.rendering import find_marks
from memoryhub.long_term_memory.models import CarriedMemory, Memory, RecallReceipt
from memoryhub.prompt_cache.domain.fingerprint import read_kept_body
from memoryhub.prompt_cache.models import Diagnosis, RequestFingerprint, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.workspaces.models import Workspace

PICO = Decimal(10) ** 12
DAYS = 30
CHUNK = 200
MOST_SESSIONS = 500
MOST_RECALLS = 5_000
CENTI_CENT = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class PlacePrice:
    """A memory in one part of the prompt: how often it was seen there, and what misses that began there cost."""

    place: str
    requests: int
    breaks: int
    usd: Decimal
    usd_per_day: Decimal


@dataclass(frozen=True, slots=True)
class MemoryPrice:
    """The price of one memory over the last days; `tail_usd_per_day` is what the same breaks would cost in the tail.

    Of the requests of all sessions that carried or recalled it, `requests_read` had a body that was looked through;
    `requests_unread` had none, so the price is the least that it cost. Without a request that carried it, `places` is empty.
    """

    days: int
    tokens: int
    places: list[PlacePrice] = field(default_factory=list)
    tail_usd_per_day: Decimal | None = None
    requests_read: int = 0
    requests_unread: int = 0

    @property
    def usd_per_day(self) -> Decimal:
        return sum((place.usd_per_day for place in self.places), Decimal(0))


def note_carried_memories() -> int:
    """Note the memories in the bodies that are kept at the moment; returns how many new notes. Safe to run again."""
    before = CarriedMemory.objects.count()
    last = 0
    rows = RequestFingerprint.objects.filter(kept_body__isnull=False).select_related("record").order_by("pk")
    while chunk := list(rows.filter(pk__gt=last)[:CHUNK]):
        last = chunk[-1].pk
        _note(chunk)
    return CarriedMemory.objects.count() - before


def _note(fingerprints: list[RequestFingerprint]) -> None:
    found: list[tuple[RequestFingerprint, str, int, str, str]] = []
    for fingerprint in fingerprints:
        for place, path, text in carried_texts(read_kept_body(bytes(fingerprint.kept_body or b""))):
            found += [(fingerprint, memory_id, version, place, path) for memory_id, version in find_marks(text)]
    memories = {
        (memory.workspace_id, memory.public_id): memory
        for memory in Memory.objects.filter(public_id__in={memory_id for _, memory_id, _, _, _ in found})
    }
    CarriedMemory.objects.bulk_create(
        [
            CarriedMemory(
                memory=memory,
                record_id=fingerprint.record.pk,
                version=version,
                place=place,
                path=path[:200],
                tokens=estimate_tokens(memory.content),
                session=fingerprint.record.session,
                model=fingerprint.record.model,
                occurred_at=fingerprint.record.occurred_at,
            )
            for fingerprint, memory_id, version, place, path in found
            if (memory := memories.get((fingerprint.record.workspace_id, memory_id))) is not None
        ],
        ignore_conflicts=True,
    )


def carried_texts(body: Any) -> Iterator[tuple[str, str, str]]:
    """(place, path of the block, text) of every text in a request's body, in the order in which it is cached."""
    if not isinstance(body, dict):
        return
    for index, tool in enumerate(body.get("tools") or ()):
        if isinstance(tool, dict) and isinstance(tool.get("description"), str):
            yield "tools", f"tools[{index}]", tool["description"]
    yield from _texts_of(body.get("system"), "system", "system")
    messages = body.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict):
            yield from _texts_of(message.get("content"), "messages", f"messages[{index}].content")


def _texts_of(content: Any, place: str, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(content, str):
        yield place, path, content
        return
    for index, block in enumerate(content if isinstance(content, list) else ()):
        here = f"{path}[{index}]"
        if isinstance(block, dict):
            if isinstance(block.get("text"), str):
                yield place, here, block["text"]
            elif "content" in block:
                yield from _texts_of(block["content"], place, here)


def price_memory(*, workspace: Workspace, memory: Memory, now: datetime, days: int = DAYS) -> MemoryPrice | None:
    """What a memory cost in cache breaks over the last days; None where it was neither carried nor recalled in a session."""
    since = now - timedelta(days=days)
    rows = list(CarriedMemory.objects.filter(memory=memory, occurred_at__gte=since).order_by("occurred_at", "id"))
    read, unread = _coverage(workspace, memory, rows, since)
    if not rows:
        return (
            MemoryPrice(days, estimate_tokens(memory.content), requests_read=read, requests_unread=unread)
            if unread
            else None
        )
    by_place: dict[str, list[CarriedMemory]] = {}
    for row in rows:
        by_place.setdefault(row.place, []).append(row)
    seen_days = max(1, min(days, (now - rows[0].occurred_at).days + 1))
    places = [_price_place(workspace, place, found, since, seen_days) for place, found in sorted(by_place.items())]
    breaks = sum(place.breaks for place in places)
    return MemoryPrice(
        days=seen_days,
        tokens=rows[-1].tokens,
        places=places,
        tail_usd_per_day=_tail_price(workspace, rows[-1], breaks, seen_days),
        requests_read=read,
        requests_unread=unread,
    )


def _coverage(workspace: Workspace, memory: Memory, rows: list[CarriedMemory], since: datetime) -> tuple[int, int]:
    """How many requests of the sessions concerned were read, and how many had no body to read, since the memory came up."""
    began: dict[str, datetime] = {}
    recalls = RecallReceipt.objects.filter(items__memory=memory, session__isnull=False, created_at__gte=since)
    for sid, at in [
        *((row.session, row.occurred_at) for row in rows if row.session),
        *recalls.order_by("created_at").values_list("session__sid", "created_at")[:MOST_RECALLS],
    ]:
        began[sid] = min(at, began.get(sid, at))
    records = UsageRecord.objects.filter(workspace=workspace, session__in=sorted(began)[:MOST_SESSIONS], part=0)
    read = unread = 0
    for sid, at, had_body in records.filter(occurred_at__gte=since).values_list(
        "session", "occurred_at", Exists(RequestFingerprint.objects.filter(record=OuterRef("pk")))
    ):
        if at >= began[sid]:
            read, unread = read + had_body, unread + (not had_body)
    return read, unread


def _price_place(workspace: Workspace, place: str, rows: list[CarriedMemory], since: datetime, days: int) -> PlacePrice:
    """The misses of the sessions that carried it whose first difference lies in a block that carried it."""
    paths = {row.path for row in rows}
    sessions = sorted({row.session for row in rows if row.session})[:MOST_SESSIONS]
    misses = Diagnosis.objects.of(workspace).filter(
        verdict="miss", session__in=sessions, occurred_at__gte=since, path__startswith=place, missed_pico__isnull=False
    )
    costs = [pico or 0 for path, pico in misses.values_list("path", "missed_pico") if _within(path, paths)]
    usd = (Decimal(sum(costs)) / PICO).quantize(CENTI_CENT)
    return PlacePrice(place, len(rows), len(costs), usd, (usd / days).quantize(CENTI_CENT))


def _within(path: str, blocks: set[str]) -> bool:
    """Whether a difference lies in one of the blocks: at it, or below it."""
    return any(path == block or path.startswith((f"{block}.", f"{block}[")) for block in blocks)


def _tail_price(workspace: Workspace, carrier: CarriedMemory, breaks: int, days: int) -> Decimal | None:
    """What the same breaks would have cost behind the tail: the memory's own tokens written again each time."""
    rates = get_price_book(workspace).rates(carrier.model, carrier.occurred_at, 0)
    if rates is None:
        return None
    return (Decimal(rates.cache_write_5m) * carrier.tokens * breaks / PICO / days).quantize(CENTI_CENT)


def list_carriers(memory: Memory, *, limit: int = 20) -> list[CarriedMemory]:
    """The last requests that carried a memory, for links to them."""
    return list(CarriedMemory.objects.filter(memory=memory).order_by("-occurred_at", "-id")[:limit])


def last_carried_at(memory: Memory) -> datetime | None:
    """When a request was last seen to carry a memory."""
    found: datetime | None = CarriedMemory.objects.filter(memory=memory).aggregate(last=Max("occurred_at"))["last"]
    return found
