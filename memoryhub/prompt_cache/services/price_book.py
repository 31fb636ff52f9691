"""Changing the price book, and pricing the ledger anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from django.db import IntegrityError, transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set, record_event
from memoryhub.common import clock, errors
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.domain.model_ids import normalise_model
from memoryhub.prompt_cache.domain.pricing import make_rates
from memoryhub.prompt_cache.models import Price
from memoryhub.prompt_cache.models.prices import ALWAYS
from memoryhub.prompt_cache.price_books import list_price_book
from memoryhub.prompt_cache.queries.price_changes import SUBJECT, PriceChange, form_of
from memoryhub.prompt_cache.services.repricing import JOB_KIND, Repricing, reprice_records
from memoryhub.prompt_cache.services.rollups import lock_ledger
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


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


def preview_prices(*, workspace: Workspace, drafts: Sequence[PriceDraft]) -> Repricing:
    """What storing these prices would change, without changing anything."""
    with transaction.atomic():
        result, _ = _store_and_reprice(workspace, drafts)
        transaction.set_rollback(True)
    return result


def store_prices(
    *, workspace: Workspace, actor: Actor, drafts: Sequence[PriceDraft], reason: str = "", door: str = ""
) -> Repricing:
    """Put prices into the workspace's book and price its records anew, in one change set."""
    with transaction.atomic():
        result, changes = _store_and_reprice(workspace, drafts)
        log_prices(
            workspace=workspace,
            actor=actor,
            action="prices.store",
            result=result,
            changes=changes,
            reason=reason,
            door=door,
        )
    return result


def remove_price(*, workspace: Workspace, actor: Actor, price_id: int, reason: str = "", door: str = "") -> Repricing:
    """Take one of the workspace's own entries out again; the list price, where there is one, holds from then on."""
    with transaction.atomic():
        lock_ledger(workspace)
        price = Price.objects.filter(workspace=workspace, pk=price_id).first()
        if price is None:
            raise errors.NotFound("There is no such price in this workspace.")
        change = PriceChange(price.model, price.valid_from, price.prompt_tokens_above, form_of(price), None)
        price.delete()
        result = reprice_records(workspace=workspace, models=[price.model])
        log_prices(
            workspace=workspace,
            actor=actor,
            action="prices.remove",
            result=result,
            changes=[change],
            reason=reason,
            door=door,
        )
    return result


def log_prices(
    *,
    workspace: Workspace,
    actor: Actor,
    action: str,
    result: Repricing,
    changes: Sequence[PriceChange],
    reason: str,
    door: str,
    reverts: ChangeSet | None = None,
) -> None:
    """Open the change set of new prices, note what each entry was and is, and leave the records that are too many to a job.

    What a price was stands in the log, so that the change can be taken back.
    """
    change_set = result.change_set = open_change_set(
        workspace=workspace,
        actor=actor,
        action=action,
        reason=reason,
        door=door,
        subject_count=result.records + result.later,
        reverts=reverts,
    )
    for model in result.models:
        record_event(
            workspace=workspace,
            actor=actor,
            action=action,
            subject_type=SUBJECT,
            subject_id=model,
            detail={
                "records": result.records,
                "cost_before_usd": money.usd_text(result.cost_before_pico),
                "cost_after_usd": money.usd_text(result.cost_after_pico),
                "changes": [change.as_json() for change in changes if change.model == model],
            },
            change_set=change_set,
        )
    if result.later:
        enqueue_job(workspace=workspace, kind=JOB_KIND, args={"models": result.models})


def _store_and_reprice(workspace: Workspace, drafts: Sequence[PriceDraft]) -> tuple[Repricing, list[PriceChange]]:
    lock_ledger(workspace)
    changes: dict[tuple[str, date, int], PriceChange] = {}
    for draft in drafts:
        change = _store(workspace, draft)
        key = (change.model, change.valid_from, change.prompt_tokens_above)
        changes[key] = replace(change, before=changes[key].before) if key in changes else change
    result = reprice_records(workspace=workspace, models={model for model, _, _ in changes})
    return result, list(changes.values())


def _store(workspace: Workspace, draft: PriceDraft) -> PriceChange:
    name = list_price_book().canonical_model(normalise_model(draft.model).name)[:200]
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
    place = {"model": name, "valid_from": valid_from, "prompt_tokens_above": draft.prompt_tokens_above}
    before = form_of(Price.objects.filter(workspace=workspace, **place).first())
    try:
        price, _ = Price.objects.update_or_create(
            workspace=workspace, **place, defaults=values, create_defaults={**values, "created_at": now}
        )
    except IntegrityError as error:
        raise BadPriceError("The price breaks a rule of the price book.") from error
    return PriceChange(name, valid_from, draft.prompt_tokens_above, before, form_of(price))
