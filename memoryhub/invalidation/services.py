"""Counting and logging invalidations. The rooms drop their entries; this shelf keeps the order and the reason."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import F

from memoryhub.common import clock, ids
from memoryhub.invalidation import feed
from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.models import InvalidationEpoch, InvalidationRecord, WatchedRoot
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


@dataclass(frozen=True, slots=True)
class Announcement:
    """A change with who announces it, why, and through which strategy and door."""

    selector: Selector
    actor: Actor
    reason: str = ""
    strategy: str = "manual"
    door: str = ""


def open_epoch(workspace: Workspace) -> int:
    """Begin an invalidation inside the caller's transaction and return its epoch.

    The row stays locked until the commit, so epochs become visible in order, and no value is stored meanwhile.
    """
    InvalidationEpoch.objects.get_or_create(workspace=workspace)
    InvalidationEpoch.objects.filter(workspace=workspace).update(epoch=F("epoch") + 1)
    return InvalidationEpoch.objects.get(workspace=workspace).epoch


def hold_epoch(workspace: Workspace) -> int:
    """Return the current epoch and keep it from moving until the caller's transaction ends (a fill does this)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            table = connection.ops.quote_name(InvalidationEpoch._meta.db_table)
            cursor.execute(f"SELECT epoch FROM {table} WHERE workspace_id = %s FOR SHARE", [workspace.pk])  # noqa: S608
            row = cursor.fetchone()
        if row is not None:
            return int(row[0])
        InvalidationEpoch.objects.get_or_create(workspace=workspace)
        return hold_epoch(workspace)
    # SQLite: the caller's transaction is the only writer.
    return InvalidationEpoch.objects.filter(workspace=workspace).values_list("epoch", flat=True).first() or 0


def record_unknown_write(*, workspace: Workspace, tool: str, actor: Actor, door: str, failed: bool = False) -> int:
    """Note that a tool ran which may have changed any file, and return the epoch; call it inside a transaction.

    Nothing is dropped: entries of before have to prove their files. Runs of the same tool with nothing announced in
    between are one line of the log, whose epoch and time move on.
    """
    epoch = open_epoch(workspace)
    InvalidationEpoch.objects.filter(workspace=workspace).update(doubt_epoch=epoch, doubt_tool=tool)
    selector = Selector(unknown_write=tool)
    newest = InvalidationRecord.objects.filter(workspace=workspace, epoch=epoch - 1).first()
    if newest is not None and (newest.selector, newest.door) == (selector.as_dict(), door[:32]):
        InvalidationRecord.objects.filter(pk=newest.pk).update(epoch=epoch, created_at=clock.now())
        transaction.on_commit(feed.ring)
        return epoch
    reason = f"{tool} {'failed' if failed else 'ran'}; what it changes is not declared"
    change = Announcement(selector, actor, reason=reason, strategy="event", door=door)
    record_invalidation(workspace=workspace, epoch=epoch, announcement=change, matched=0, invalidated=0)
    return epoch


def record_invalidation(
    *, workspace: Workspace, epoch: int, announcement: Announcement, matched: int, invalidated: int
) -> InvalidationRecord:
    """Write the log line of an epoch; streams hear of it after the commit."""
    actor = announcement.actor
    record = InvalidationRecord.objects.create(
        workspace=workspace,
        public_id=ids.new_id("inv"),
        epoch=epoch,
        selector=announcement.selector.as_dict(),
        strategy=announcement.strategy,
        reason=announcement.reason[:500],
        matched=matched,
        invalidated=invalidated,
        actor_kind=actor.kind,
        actor_id=actor.id[:200],
        actor_label=actor.label[:200],
        door=announcement.door[:32],
        created_at=clock.now(),
    )
    transaction.on_commit(feed.ring)
    return record


def note_watching(*, path: str, since: datetime) -> None:
    """Give a watched folder's sign of life; a new `since` says that there was a gap before it."""
    WatchedRoot.objects.update_or_create(path=path, defaults={"since": since, "alive_at": clock.now()})


def note_not_watching(*, path: str) -> None:
    """Say that a folder is not watched any more."""
    WatchedRoot.objects.filter(path=path).delete()
