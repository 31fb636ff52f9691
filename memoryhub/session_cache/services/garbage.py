"""Letting go of what nobody can reach any more. Everything in small transactions, so that no writer waits for long."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from memoryhub.common import clock
from memoryhub.session_cache.models import (
    Blob,
    Branch,
    SessionEvent,
    SessionTree,
    ToolDependency,
    ToolKey,
    ToolResult,
    ToolSpace,
    ToolUsage,
)
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Session

KEY_STATE_HOURS = 24  # how long a miss can still say why its entry is gone
CHUNK = 1000
MOST_SESSIONS = 500  # of one run


def collect_garbage() -> dict[str, int]:
    """Remove sessions past their retention, contents that no event carries, and old states of keys."""
    return {
        "sessions": forget_old_sessions(days=settings.SESSION_RETENTION_DAYS),
        "blobs": remove_unused_blobs(),
        "keys": remove_old_key_states(),
    }


def forget_old_sessions(*, days: int) -> int:
    """Remove the events and tool results of sessions idle for so many days; 0 keeps all. Forks keep their past alive."""
    if days <= 0:
        return 0
    oldest = clock.now() - timedelta(days=days)
    needed_by_fork = Branch.objects.filter(parent__session=OuterRef("pk")).exclude(session=OuterRef("pk"))
    needed_as_origin = SessionTree.objects.filter(origin_branch__session=OuterRef("pk")).exclude(session=OuterRef("pk"))
    has_something = SessionTree.objects.filter(session=OuterRef("pk"), event_count__gt=0)
    idle = (
        Session.objects.filter(Exists(has_something), ~Exists(needed_by_fork), ~Exists(needed_as_origin))
        .filter(last_active_at__lt=oldest)
        .order_by("last_active_at")
    )
    forgotten = 0
    for session in idle[:MOST_SESSIONS]:
        forgotten += _forget(session, oldest, idle)
    return forgotten


def _forget(session: Session, oldest: datetime, idle: QuerySet[Session]) -> bool:
    """Remove one session's tree and results; who it was stays. Tell whether it was still idle and nobody's past.

    1. Under the writers' lock: look again, and cut the tree off. Whoever appends from now on starts a new one.
    2. Remove what was cut off, some events at a time.
    """
    with write_transaction():
        if SessionTree.objects.select_for_update().filter(session=session).first() is None:
            return False
        if not idle.filter(pk=session.pk, last_active_at__lt=oldest).exists():
            return False
        SessionTree.objects.filter(session=session).delete()
        cut_off = list(Branch.objects.filter(session=session).order_by("-pk").values_list("pk", flat=True))
    for branch in cut_off:  # children before their parents
        while _remove_events(branch) == CHUNK:
            pass
    with write_transaction():
        for branch in cut_off:
            Branch.objects.filter(pk=branch).delete()
    with write_transaction():
        ToolDependency.objects.filter(result__space__session=session).delete()
        ToolResult.objects.filter(space__session=session).delete()
        ToolSpace.objects.filter(session=session).delete()
        ToolUsage.objects.filter(session=session).delete()
    return True


def _remove_events(branch: int) -> int:
    with write_transaction():
        some = list(SessionEvent.objects.filter(branch_id=branch).values_list("pk", flat=True)[:CHUNK])
        SessionEvent.objects.filter(pk__in=some)._raw_delete(using="default")
    return len(some)


def remove_unused_blobs() -> int:
    """Remove contents that no event carries and return how many.

    An append may find such a content and be about to carry it. On PostgreSQL it holds the row meanwhile, so rows that
    are held are passed by; and once this has locked a row, the second look sees every append that was faster. SQLite
    has one writer at a time.
    """
    removed = 0
    last = 0
    while True:
        with write_transaction():
            unused = Blob.objects.filter(~Exists(SessionEvent.objects.filter(blob=OuterRef("pk"))))
            some = list(_unheld(unused.filter(pk__gt=last).order_by("pk")).values_list("pk", flat=True)[:CHUNK])
            removed += unused.filter(pk__in=some)._raw_delete(using="default") if some else 0
        if len(some) < CHUNK:
            return removed
        last = some[-1]


def _unheld(blobs: QuerySet[Blob]) -> QuerySet[Blob]:
    return blobs.select_for_update(skip_locked=True) if connection.vendor == "postgresql" else blobs


def remove_old_key_states() -> int:
    """Remove what is known of keys that nobody has touched for a day."""
    now = clock.now()
    old = Q(updated_at__lt=now - timedelta(hours=KEY_STATE_HOURS))
    free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=now)
    removed, _ = ToolKey.objects.filter(old & free).delete()
    return removed
