"""Pricing records anew, after the book has changed. Amounts and daily sums change together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import QuerySet

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock
from memoryhub.prompt_cache.domain.entries import UNPRICED, book_entry
from memoryhub.prompt_cache.domain.pricing import PriceBook
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.services.rollups import RollUpChanges, lock_ledger
from memoryhub.prompt_cache.services.rows import known_from_row, update_columns
from memoryhub.workspaces.models import Workspace

JOB_KIND = "reprice"
ROWS_PER_STEP = 2_000
# Up to here a change of prices shows its effect at once; above, writers would wait for it, and a job does it in steps.
MOST_AT_ONCE = 20_000
_PRICED_FIELDS = ["state", "cost_pico", "nocache_pico", "flags", "price_book_version", "updated_at"]


@dataclass(slots=True)
class Repricing:
    """What new prices do to records that are in the ledger already.

    `later` is how many records a job still has to look at; the figures are then those of the newest ones only.
    """

    records: int = 0
    newly_priced: int = 0
    cost_before_pico: int = 0
    cost_after_pico: int = 0
    nocache_before_pico: int = 0
    nocache_after_pico: int = 0
    change_set: ChangeSet | None = None
    models: list[str] = field(default_factory=list)
    later: int = 0

    @property
    def difference_pico(self) -> int:
        return self.cost_after_pico - self.cost_before_pico


def reprice_records(*, workspace: Workspace, models: Iterable[str]) -> Repricing:
    """Price the records of some models anew in one transaction: all of them, or the newest ones where there are too many."""
    with transaction.atomic():
        state = lock_ledger(workspace)
        book = get_price_book(workspace)
        result = Repricing(models=sorted(models))
        changes = RollUpChanges.of(workspace, state)
        records = _records_of(workspace, book, result.models)
        newest = list(records.order_by("-pk").values_list("pk", flat=True)[: MOST_AT_ONCE + 1])
        if len(newest) > MOST_AT_ONCE:
            result.later = records.count() - MOST_AT_ONCE
            records = records.filter(pk__gte=newest[MOST_AT_ONCE - 1])
        last = 0
        while rows := _next_rows(records, last):
            last = rows[-1].pk
            _reprice_rows(rows, book, changes, result)
        changes.write()
    return result


def reprice_in_steps(
    *, workspace: Workspace, models: Iterable[str], progress: Callable[[int], None] | None = None
) -> Repricing:
    """Price all records of some models anew, a step at a time, so that writers never wait for more than one step."""
    result = Repricing(models=sorted(models))
    last = looked_at = 0
    while True:
        with transaction.atomic():
            state = lock_ledger(workspace)
            book = get_price_book(workspace)
            rows = _next_rows(_records_of(workspace, book, result.models), last)
            if not rows:
                return result
            changes = RollUpChanges.of(workspace, state)
            _reprice_rows(rows, book, changes, result)
            changes.write()
        last, looked_at = rows[-1].pk, looked_at + len(rows)
        if progress is not None:
            progress(looked_at)


def _records_of(workspace: Workspace, book: PriceBook, names: list[str]) -> QuerySet[UsageRecord]:
    """The records of some models, under all their official names."""
    spellings = {*names, *(alias for alias, name in book.aliases.items() if name in names)}
    return UsageRecord.objects.of(workspace).filter(model__in=sorted(spellings))


def _next_rows(records: QuerySet[UsageRecord], last: int) -> list[UsageRecord]:
    return list(records.filter(pk__gt=last).order_by("pk")[:ROWS_PER_STEP])


def _reprice_rows(rows: list[UsageRecord], book: PriceBook, changes: RollUpChanges, result: Repricing) -> None:
    changed = [row for row in rows if _reprice(row, book, changes, result)]
    update_columns(UsageRecord, changed, names=_PRICED_FIELDS)


def _reprice(row: UsageRecord, book: PriceBook, changes: RollUpChanges, result: Repricing) -> bool:
    entry = book_entry(known_from_row(row).resolved(), book)
    before = (row.state, row.cost_pico, row.nocache_pico, row.flags)
    if before == (entry.state, entry.cost_pico, entry.nocache_pico, list(entry.flags)):
        return False
    changes.add(vars(row), -1)
    result.records += 1
    result.newly_priced += row.state == UNPRICED and entry.state != UNPRICED
    result.cost_before_pico += row.cost_pico
    result.nocache_before_pico += row.nocache_pico
    result.cost_after_pico += entry.cost_pico
    result.nocache_after_pico += entry.nocache_pico
    row.state, row.cost_pico, row.nocache_pico = entry.state, entry.cost_pico, entry.nocache_pico
    row.flags, row.price_book_version, row.updated_at = list(entry.flags), book.version, clock.now()
    changes.add(vars(row))
    return True
