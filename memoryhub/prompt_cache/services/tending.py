"""What the ledger needs now and then, whoever changed the world around it."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from memoryhub.common import clock
from memoryhub.prompt_cache.models import DailyUsage, Dimension, LedgerState, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.services.findings import forget_findings
from memoryhub.prompt_cache.services.repricing import reprice_in_steps
from memoryhub.prompt_cache.services.rollups import STALE, RollUpChanges, lock_ledger, rebuild_rollups
from memoryhub.workspaces.models import Workspace

_ROWS_PER_STEP = 2_000  # other writers wait for one step at the most


def tend_ledger(*, workspace: Workspace) -> dict[str, Any]:
    """Rebuild the daily sums where the workspace's zone has changed; price records whose model has a price by now;
    forget what is older than the retention."""
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
        done["newly_priced"] = reprice_in_steps(workspace=workspace, models=known).newly_priced
    forgotten = forget_old_usage(workspace=workspace, days=settings.USAGE_RETENTION_DAYS)
    return {**done, "forgotten": forgotten} if forgotten else done


def forget_old_usage(*, workspace: Workspace, days: int) -> int:
    """Remove records and daily sums older than so many whole local days (0 keeps all); returns how many records went."""
    if not days:
        return 0
    zone = ZoneInfo(Workspace.objects.values_list("time_zone", flat=True).get(pk=workspace.pk))
    first_kept = clock.now().astimezone(zone).date() - timedelta(days=days)
    oldest = datetime.combine(first_kept, time.min, tzinfo=zone)
    forgotten = 0
    while count := _forget_some(workspace, oldest):
        forgotten += count
    with transaction.atomic():
        state = lock_ledger(workspace)
        if state.time_zone == zone.key:
            quarters = Q(dimension=Dimension.QUARTER)
            gone = ~quarters & Q(day__lt=first_kept) | quarters & Q(day__lt=oldest.astimezone(UTC).date())
            DailyUsage.objects.filter(gone, workspace=workspace).delete()
            forget_findings(workspace=workspace, before=first_kept)
    return forgotten


def _forget_some(workspace: Workspace, oldest: datetime) -> int:
    """Remove one step's records together with what they add to the daily sums; returns how many."""
    with transaction.atomic():
        state = lock_ledger(workspace)
        rows = list(UsageRecord.objects.of(workspace).filter(occurred_at__lt=oldest).order_by("pk")[:_ROWS_PER_STEP])
        if state.time_zone != STALE:
            changes = RollUpChanges.of(workspace, state)
            for row in rows:
                changes.add(vars(row), -1)
            changes.write()
        UsageRecord.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows)
