"""Letting go of what nobody can reach any more. Everything in small transactions, so that no writer waits for long."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

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
        _forget(session)
        forgotten += 1
    return forgotten


def _forget(session: Session) -> None:
    """Remove one session's tree and results; who it was stays."""
    while True:
        with transaction.atomic():
            some = list(SessionEvent.objects.filter(session=session).values_list("pk", flat=True)[:CHUNK])
            SessionEvent.objects.filter(pk__in=some)._raw_delete(using="default")
        if len(some) < CHUNK:
            break
    with transaction.atomic():
        SessionTree.objects.filter(session=session).delete()
        for branch in Branch.objects.filter(session=session).order_by("-pk"):  # children before their parents
            branch.delete()
        ToolDependency.objects.filter(result__session=session).delete()
        ToolResult.objects.filter(space__session=session).delete()
        ToolSpace.objects.filter(session=session).delete()
        ToolUsage.objects.filter(session=session).delete()


def remove_unused_blobs() -> int:
    """Remove contents that no event carries and return how many."""
    removed = 0
    while True:
        with transaction.atomic():
            carried = SessionEvent.objects.filter(blob=OuterRef("pk"))
            some = list(Blob.objects.filter(~Exists(carried)).values_list("pk", flat=True)[:CHUNK])
            Blob.objects.filter(pk__in=some)._raw_delete(using="default")
        removed += len(some)
        if len(some) < CHUNK:
            return removed


def remove_old_key_states() -> int:
    """Remove what is known of keys that nobody has touched for a day."""
    now = clock.now()
    old = Q(updated_at__lt=now - timedelta(hours=KEY_STATE_HOURS))
    free = Q(lease_expires_at=None) | Q(lease_expires_at__lt=now)
    removed, _ = ToolKey.objects.filter(old & free).delete()
    return removed
