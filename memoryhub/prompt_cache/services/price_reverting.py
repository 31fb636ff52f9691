"""Taking a change of prices back: the entries become what they were, and the ledger is priced anew."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

from django.db import transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock, errors
from memoryhub.prompt_cache.models import Price
from memoryhub.prompt_cache.queries.price_changes import PriceChange, PriceForm, form_of, list_price_changes
from memoryhub.prompt_cache.services.price_book import log_prices
from memoryhub.prompt_cache.services.repricing import Repricing, reprice_records
from memoryhub.prompt_cache.services.rollups import lock_ledger
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


class NoPricesToRevertError(errors.Conflict):
    slug = "nothing-to-revert"
    title = "There is nothing to take back"


@dataclass(frozen=True, slots=True)
class RevertedPrices:
    """How many entries went back, which were left alone and why, and what that did to the ledger."""

    reverted: int
    repricing: Repricing
    skipped: list[dict[str, str]] = field(default_factory=list)  # {"id", "reason"}


def revert_prices(
    *,
    workspace: Workspace,
    actor: Actor,
    change_set: ChangeSet,
    reason: str = "",
    door: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> RevertedPrices:
    """Give the entries that a change set touched their earlier form and price their records anew, as a change set of its own.

    Entries that changed since are listed and left alone, unless forced. A dry run says what would change and changes
    nothing. Raises NoPricesToRevertError where the change set touched no price, or does not say what it was.
    """
    with transaction.atomic():
        lock_ledger(workspace)
        changes = list_price_changes(change_set)
        if not changes:
            raise NoPricesToRevertError("This change set does not say what the prices were before.")
        skipped, done = [], []
        for change in changes:
            price = _find(workspace, change)
            if form_of(price) == change.before or (form_of(price) != change.after and not force):
                skipped.append({"id": _name(change), "reason": _why_left(price, change)})
            else:
                done.append(_put_back(workspace, change, price))
        result = reprice_records(workspace=workspace, models={change.model for change in done})
        if dry_run:
            transaction.set_rollback(True)
        elif done:
            log_prices(
                workspace=workspace,
                actor=actor,
                action="revert",
                result=result,
                changes=done,
                reason=reason or f"reverts {change_set.public_id}",
                door=door,
                reverts=change_set,
            )
    return RevertedPrices(len(done), result, skipped)


def _find(workspace: Workspace, change: PriceChange) -> Price | None:
    return Price.objects.filter(
        workspace=workspace,
        model=change.model,
        valid_from=change.valid_from,
        prompt_tokens_above=change.prompt_tokens_above,
    ).first()


def _why_left(price: Price | None, change: PriceChange) -> str:
    return "back already" if form_of(price) == change.before else "changed since"


def _name(change: PriceChange) -> str:
    return f"{change.model} {change.valid_from.isoformat()} above {change.prompt_tokens_above}"


def _put_back(workspace: Workspace, change: PriceChange, price: Price | None) -> PriceChange:
    """Make one entry what it was; returns that as a change, so that it can be taken back too."""
    stood = form_of(price)
    if change.before is None:
        if price is not None:
            price.delete()
    else:
        now = clock.now()
        price = price or Price(
            workspace=workspace,
            model=change.model,
            valid_from=change.valid_from,
            prompt_tokens_above=change.prompt_tokens_above,
            created_at=now,
        )
        _write(price, change.before)
        price.updated_at = now
        price.save()
    return PriceChange(change.model, change.valid_from, change.prompt_tokens_above, stood, change.before)


def _write(price: Price, form: PriceForm) -> None:
    for name, value in form.items():
        setattr(price, name, value)
    until = form["valid_until"]
    price.valid_until = date.fromisoformat(until) if until else None
