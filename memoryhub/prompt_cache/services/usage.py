"""Writing usage into the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from django.db import transaction

from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain.entries import EXCLUDED, PRICED, UNPRICED, book_entry
from memoryhub.prompt_cache.domain.reports import UsageReport, sightings_of_report
from memoryhub.prompt_cache.domain.sightings import Joined, Sighting
from memoryhub.prompt_cache.domain.usage import UsageError
from memoryhub.prompt_cache.models import LedgerState, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.services.doctor import SentRequest, examine
from memoryhub.prompt_cache.services.rollups import RollUpChanges, lock_ledger
from memoryhub.prompt_cache.services.rows import KEYS_PER_QUERY, known_from_row, row_values, upsert
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.services import ensure_sessions


class BadReportError(errors.Invalid):
    slug = "bad-usage"
    title = "This usage can't be read"


PartKey = tuple[str, int]
_UNIQUE = ("workspace_id", "message_id", "part")


@dataclass(slots=True)
class BookedResponse:
    """What the ledger says about one response after recording it."""

    message_id: str
    cost_pico: int = 0
    nocache_pico: int = 0
    unpriced: bool = False
    excluded: bool = False
    flags: list[str] = field(default_factory=list)

    @property
    def has_amount(self) -> bool:
        return not self.unpriced and not self.excluded

    @property
    def net_saving_pico(self) -> int:
        return self.nocache_pico - self.cost_pico


@dataclass(slots=True)
class RecordedUsage:
    """How many responses a batch added, changed, or only repeated."""

    statuses: dict[str, str] = field(default_factory=dict)  # message id -> created, updated or unchanged
    responses: dict[str, BookedResponse] = field(default_factory=dict)

    def count(self, status: str) -> int:
        return sum(1 for one in self.statuses.values() if one == status)

    @property
    def created(self) -> int:
        return self.count("created")

    @property
    def updated(self) -> int:
        return self.count("updated")

    @property
    def unchanged(self) -> int:
        return self.count("unchanged")


def record_usage(*, workspace: Workspace, sightings: Iterable[Sighting]) -> RecordedUsage:
    """Join sightings into the ledger: idempotent, in any order, all or nothing, with the daily sums.

    1. the batch's own repeats are joined   2. the ledger is locked and its rows of the same responses are read
    3. what is known is joined and priced   4. changed rows and changed sums are written, each by one statement
    """
    seen = join_sightings(sightings)
    with transaction.atomic():
        state = lock_ledger(workspace)
        changes = RollUpChanges.of(workspace, state)
        result = _record(workspace, seen, changes)
        changes.write()
        if result.count("created"):
            state.last_arrival_at = clock.now()
            state.save(update_fields=["last_arrival_at"])
        if state.time_zone != workspace.time_zone:
            _ask_for_tending(workspace, state)
    return result


def _ask_for_tending(workspace: Workspace, state: LedgerState) -> None:
    """The workspace's zone was changed: leave a job that moves the daily sums; until then reports read the records."""
    key = f"tend_ledger:{workspace.pk}:{state.time_zone}:{workspace.time_zone}:{clock.now():%Y-%m-%d-%H}"
    enqueue_job(workspace=workspace, kind="tend_ledger", idempotency_key=key)


def record_reports(
    *, workspace: Workspace, reports: Sequence[UsageReport], requests: Sequence[SentRequest] = ()
) -> RecordedUsage:
    """Record what callers report about responses; one report that can't be read refuses all of them, with its place.

    The requests behind them, where they came along, are compared with the ones before and then forgotten but for hashes.
    """
    now = clock.now()
    sightings: list[Sighting] = []
    problems = []
    for index, report in enumerate(reports):
        try:
            sightings.extend(sightings_of_report(report, now))
        except UsageError as error:
            problems.append({"in": "body", "field": f"{index}.{error.path}", "message": error.reason})
    if problems:
        raise BadReportError(f"{problems[0]['field']}: {problems[0]['message']}.", errors=problems)
    with transaction.atomic():
        ensure_sessions(workspace=workspace, sids=[report.session for report in reports])
        recorded = record_usage(workspace=workspace, sightings=sightings)
        changed = [key for key, status in recorded.statuses.items() if status != "unchanged"]
        examine(workspace=workspace, message_ids=changed, requests=requests)
        return recorded


def join_sightings(sightings: Iterable[Sighting]) -> dict[PartKey, Joined]:
    """All sightings of a batch by response and part."""
    seen: dict[PartKey, Joined] = {}
    for sighting in sightings:
        key = (sighting.key, sighting.part)
        one = Joined.of(sighting)
        known = seen.get(key)
        seen[key] = known.joined(one) if known else one
    return seen


def _record(workspace: Workspace, seen: dict[PartKey, Joined], changes: RollUpChanges) -> RecordedUsage:
    book = get_price_book(workspace)
    now = clock.now()
    stored = _stored_rows(workspace, seen)
    rows: list[dict[str, Any]] = []
    result = RecordedUsage()
    status = result.statuses
    for key, joined in seen.items():
        row = stored.get(key)
        before = known_from_row(row) if row else None
        after = before.joined(joined) if before else joined
        if row is not None and after == before:
            status.setdefault(key[0], "unchanged")
            _answer(result, vars(row))
            continue
        values = row_values(after, book_entry(after.resolved(), book), book.version)
        rows.append({"workspace_id": workspace.pk, **values, "created_at": now, "updated_at": now})
        if row is not None:
            changes.add(vars(row), -1)
        changes.add(values)
        _answer(result, values)
        _note_status(status, key, new=row is None)
    upsert(UsageRecord, rows, unique=_UNIQUE)
    return result


def _note_status(status: dict[str, str], key: PartKey, *, new: bool) -> None:
    """A response is created with its part 0; a part that comes later updates it."""
    message_id, part = key
    if new and part == 0:
        status[message_id] = "created"
    elif status.get(message_id) != "created":
        status[message_id] = "updated"


def _answer(result: RecordedUsage, row: Any) -> None:
    booked = result.responses.setdefault(row["message_id"], BookedResponse(row["message_id"]))
    booked.flags = sorted({*booked.flags, *row["flags"]})
    if row["state"] == PRICED:
        booked.cost_pico += row["cost_pico"]
        booked.nocache_pico += row["nocache_pico"]
    booked.unpriced = booked.unpriced or row["state"] == UNPRICED
    booked.excluded = booked.excluded or row["state"] == EXCLUDED


def _stored_rows(workspace: Workspace, keys: Iterable[PartKey]) -> dict[PartKey, UsageRecord]:
    found: dict[PartKey, UsageRecord] = {}
    for some in _portions(sorted({message_id for message_id, _ in keys}), KEYS_PER_QUERY):
        for row in UsageRecord.objects.of(workspace).filter(message_id__in=some):
            found[row.message_id, row.part] = row
    return found


def _portions(items: Sequence[str], size: int) -> Iterator[list[str]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
