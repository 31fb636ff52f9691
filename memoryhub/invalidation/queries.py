"""Reads of the invalidation log."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.models import InvalidationEpoch, InvalidationRecord, WatchedRoot
from memoryhub.workspaces.models import Workspace


def get_epoch(workspace_id: int) -> int:
    """Return how many invalidations the workspace has seen."""
    found = InvalidationEpoch.objects.filter(workspace_id=workspace_id).values_list("epoch", flat=True).first()
    return found or 0


def get_epochs(workspace_ids: set[int]) -> dict[int, int]:
    """Return the epochs of several workspaces; one query."""
    rows = InvalidationEpoch.objects.filter(workspace_id__in=workspace_ids)
    return dict(rows.values_list("workspace_id", "epoch"))


def get_unknown_write(workspace: Workspace) -> tuple[int, str]:
    """Return the epoch of the last run that may have changed any file, and the tool; (0, "") before the first."""
    found = InvalidationEpoch.objects.filter(workspace=workspace).values_list("doubt_epoch", "doubt_tool").first()
    return found or (0, "")


def list_invalidations(workspace: Workspace) -> QuerySet[InvalidationRecord]:
    """Return the log, to be cut by cursor, the newest first."""
    return InvalidationRecord.objects.filter(workspace=workspace)


def list_records_after(workspace_id: int, epoch: int, *, limit: int) -> list[InvalidationRecord]:
    """Return what came after an epoch, the oldest first."""
    return list(InvalidationRecord.objects.filter(workspace_id=workspace_id).after(epoch)[:limit])


def list_changes_after(workspace: Workspace, epoch: int) -> tuple[Selector, ...]:
    """Return the selectors announced after an epoch: what a value computed since then has to stand against."""
    records = InvalidationRecord.objects.filter(workspace=workspace).after(epoch)
    return tuple(Selector(**selector) for selector in records.values_list("selector", flat=True))


WATCHER_SILENCE_SECONDS = 10.0  # a watcher that has been silent for longer vouches for nothing


def list_watched_since(now: datetime) -> dict[str, datetime]:
    """Return the watched folders with since when each has been watched without a gap."""
    alive = WatchedRoot.objects.filter(alive_at__gte=now - timedelta(seconds=WATCHER_SILENCE_SECONDS))
    return dict(alive.values_list("path", "since"))
