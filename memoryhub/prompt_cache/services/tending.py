"""What the ledger needs now and then, whoever changed the world around it."""

from __future__ import annotations

from typing import Any

from memoryhub.prompt_cache.models import LedgerState, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.services.price_book import reprice_records
from memoryhub.prompt_cache.services.rollups import rebuild_rollups
from memoryhub.workspaces.models import Workspace


def tend_ledger(*, workspace: Workspace) -> dict[str, Any]:
    """Rebuild the daily sums where the workspace's zone has changed; price records whose model has a price by now."""
    state = LedgerState.objects.filter(workspace=workspace).first()
    if state is None:
        return {}
    done: dict[str, Any] = {}
    zone = Workspace.objects.values_list("time_zone", flat=True).get(pk=workspace.pk)
    if state.time_zone != zone:
        done["daily_sums"] = rebuild_rollups(workspace=workspace, time_zone=zone)
    book = get_price_book(workspace)
    waiting = UsageRecord.objects.of(workspace).unpriced().values_list("model", flat=True).distinct()
    known = [model for model in waiting if book.knows(model)]
    if known:
        done["newly_priced"] = reprice_records(workspace=workspace, models=known).newly_priced
    return done
