"""Changing the price book, and pricing the ledger anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from django.db import IntegrityError, transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set, record_event
from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.entries import UNPRICED, book_entry
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.pricing import PriceBook, make_rates
from memoryhub.prompt_cache.models import Price, UsageRecord
from memoryhub.prompt_cache.models.prices import ALWAYS
from memoryhub.prompt_cache.price_books import get_price_book, list_price_book
from memoryhub.prompt_cache.services.rollups import RollUpChanges, lock_ledger
from memoryhub.prompt_cache.services.rows import known_from_row, update_columns
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

_ROWS_PER_STEP = 2_000


class BadPriceError(errors.Invalid):
    slug = "bad-price"
    title = "This price can't be used"


@dataclass(frozen=True, slots=True)
class PriceDraft:
    """A price that somebody wants to put into the book, in USD per million tokens. What is None follows the usual ratio."""

    model: str
    input_usd: Decimal
    output_usd: Decimal
    cache_write_5m_usd: Decimal | None = None
    cache_write_1h_usd: Decimal | None = None
    cache_read_usd: Decimal | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    prompt_tokens_above: int = 0
    note: str = ""


@dataclass(slots=True)
class Repricing:
    """What new prices do to records that are in the ledger already."""

    records: int = 0
    newly_priced: int = 0
    cost_before_pico: int = 0
    cost_after_pico: int = 0
    nocache_before_pico: int = 0
    nocache_after_pico: int = 0
    change_set: ChangeSet | None = None
    models: list[str] = field(default_factory=list)

    @property
    def difference_pico(self) -> int:
        return self.cost_after_pico - self.cost_before_pico


def preview_prices(*, workspace: Workspace, drafts: Sequence[PriceDraft]) -> Repricing:
    """What storing these prices would change, without changing anything."""
    with transaction.atomic():
        result = _store_and_reprice(workspace, drafts)
        transaction.set_rollback(True)
    return result


def store_prices(
    *, workspace: Workspace, actor: Actor, drafts: Sequence[PriceDraft], reason: str = "", door: str = ""
) -> Repricing:
    """Put prices into the workspace's book and price its records anew, in one change set."""
    with transaction.atomic():
        result = _store_and_reprice(workspace, drafts)
        result.change_set = _log(workspace, actor, "prices.store", result, reason, door)
    return result


def remove_price(*, workspace: Workspace, actor: Actor, price_id: int, reason: str = "", door: str = "") -> Repricing:
    """Take one of the workspace's own entries out again; the list price, where there is one, holds from then on."""
    with transaction.atomic():
        lock_ledger(workspace)
        price = Price.objects.filter(workspace=workspace, pk=price_id).first()
        if price is None:
            raise errors.NotFound("There is no such price in this workspace.")
        price.delete()
        result = reprice_records(workspace=workspace, models=[price.model])
        result.change_set = _log(workspace, actor, "prices.remove", result, reason, door)
    return result


def _log(workspace: Workspace, actor: Actor, action: str, result: Repricing, reason: str, door: str) -> ChangeSet:
    change_set = open_change_set(
        workspace=workspace, actor=actor, action=action, reason=reason, door=door, subject_count=result.records
    )
    for model in result.models:
        record_event(
            workspace=workspace,
            actor=actor,
            action=action,
            subject_type="price",
            subject_id=model,
            detail={
                "records": result.records,
                "cost_before_usd": money.usd_text(result.cost_before_pico),
                "cost_after_usd": money.usd_text(result.cost_after_pico),
            },
            change_set=change_set,
        )
    return change_set


def _store_and_reprice(workspace: Workspace, drafts: Sequence[PriceDraft]) -> Repricing:
    lock_ledger(workspace)
    names = []
    for draft in drafts:
        names.append(_store(workspace, draft))
    return reprice_records(workspace=workspace, models=sorted(set(names)))


def _store(workspace: Workspace, draft: PriceDraft) -> str:
    name = list_price_book().canonical_model(normalise_model(draft.model).name)
    try:
        rates = make_rates(
            input=draft.input_usd,
            output=draft.output_usd,
            cache_write_5m=draft.cache_write_5m_usd,
            cache_write_1h=draft.cache_write_1h_usd,
            cache_read=draft.cache_read_usd,
        )
    except money.AmountError as error:
        raise BadPriceError(f"{error}.") from error
    valid_from = draft.valid_from or ALWAYS
    if draft.valid_until is not None and draft.valid_until < valid_from:
        raise BadPriceError("A price can't end before it begins.")
    now = clock.now()
    values = {
        "valid_until": draft.valid_until,
        "input_rate": rates.input,
        "cache_write_5m_rate": rates.cache_write_5m,
        "cache_write_1h_rate": rates.cache_write_1h,
        "cache_read_rate": rates.cache_read,
        "output_rate": rates.output,
        "note": draft.note[:300],
        "updated_at": now,
    }
    try:
        Price.objects.update_or_create(
            workspace=workspace,
            model=name[:200],
            valid_from=valid_from,
            prompt_tokens_above=draft.prompt_tokens_above,
            defaults=values,
            create_defaults={**values, "created_at": now},
        )
    except IntegrityError as error:
        raise BadPriceError("The price breaks a rule of the price book.") from error
    return name


def reprice_records(*, workspace: Workspace, models: Iterable[str] | None = None) -> Repricing:
    """Price records anew with the book as it is; None means every model. Amounts and daily sums change together."""
    with transaction.atomic():
        state = lock_ledger(workspace)
        book = get_price_book(workspace)
        result = Repricing(models=sorted(models) if models is not None else [])
        changes = RollUpChanges.of(workspace, state)
        records = UsageRecord.objects.of(workspace)
        if models is not None:
            records = records.filter(model__in=_spellings(book, result.models))
        last = 0
        while rows := list(records.filter(pk__gt=last).order_by("pk")[:_ROWS_PER_STEP]):
            last = rows[-1].pk
            changed = [row for row in rows if _reprice(row, book, changes, result)]
            update_columns(UsageRecord, changed, names=_PRICED_FIELDS)
        changes.write()
    return result


_PRICED_FIELDS = ["state", "cost_pico", "nocache_pico", "flags", "price_book_version", "updated_at"]


def _spellings(book: PriceBook, names: list[str]) -> list[str]:
    """A model and its other official names."""
    return sorted({*names, *(alias for alias, name in book.aliases.items() if name in names)})


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
