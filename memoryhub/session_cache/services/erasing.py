"""Erasing sessions for good: events, contents, tool results, and who the session was."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Exists, OuterRef

from memoryhub.session_cache.models import (
    Branch,
    SessionEvent,
    SessionTree,
    ToolDependency,
    ToolResult,
    ToolSpace,
    ToolUsage,
)
from memoryhub.session_cache.services.garbage import remove_unused_blobs
from memoryhub.workspaces.models import Session

CHUNK = 1000


@dataclass
class ErasedSessions:
    """How many went, and the ids of those that stay because another session was forked from them."""

    count: int = 0
    kept: list[str] = field(default_factory=list)


def erase_sessions(sessions: Sequence[Session]) -> ErasedSessions:
    """Remove these sessions, forks before what they grew from; contents that nobody else carries go with them."""
    done = ErasedSessions()
    waiting = {session.pk: session for session in sessions}
    while waiting:
        free = list(_free(list(waiting)))
        if not free:
            break
        for pk in free:
            _erase(waiting.pop(pk))
            done.count += 1
    done.kept = sorted(session.sid for session in waiting.values())
    remove_unused_blobs()
    return done


def _free(pks: list[int]) -> list[int]:
    """Those of the sessions that no other session stands on."""
    grown = Branch.objects.filter(parent__session=OuterRef("pk")).exclude(session=OuterRef("pk"))
    begun = SessionTree.objects.filter(origin_branch__session=OuterRef("pk")).exclude(session=OuterRef("pk"))
    free: list[int] = []
    for start in range(0, len(pks), CHUNK):
        rows = Session.objects.filter(pk__in=pks[start : start + CHUNK])
        free += rows.filter(~Exists(grown), ~Exists(begun)).values_list("pk", flat=True)
    return free


def _erase(session: Session) -> None:
    with transaction.atomic():
        SessionTree.objects.filter(session=session).delete()
    while True:
        with transaction.atomic():
            some = list(SessionEvent.objects.filter(session=session).values_list("pk", flat=True)[:CHUNK])
            SessionEvent.objects.filter(pk__in=some)._raw_delete(using="default")
        if len(some) < CHUNK:
            break
    with transaction.atomic():
        for branch in Branch.objects.filter(session=session).order_by("-pk"):  # children before their parents
            branch.delete()
        for results in (ToolResult.objects.filter(session=session), ToolResult.objects.filter(space__session=session)):
            ToolDependency.objects.filter(result__in=results).delete()
            results.delete()
        ToolSpace.objects.filter(session=session).delete()
        ToolUsage.objects.filter(session=session).delete()
        session.delete()
