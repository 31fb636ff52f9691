"""Moving a session's head back, and what long-term memory has kept from the future that is left behind."""

from dataclasses import dataclass

from django.db.models import Q

from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.bulk import BulkAction, bulk_edit
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.session_cache.services.events import Rewound, preview_rewind, rewind
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import Principal

MOST_MEMORIES = 1000


@dataclass(frozen=True, slots=True)
class RewindOutcome:
    """Where the session stands, the events that it no longer sees, and the memories written from them."""

    head: str
    abandoned_count: int
    memory_ids: tuple[str, ...]


def rewind_session(*, session: Session, to: str) -> RewindOutcome:
    """Move the head; nothing is copied or deleted, and the memories are only named, for somebody to decide."""
    return _outcome(session, rewind(session=session, to=to))


def preview_rewind_session(*, session: Session, to: str) -> RewindOutcome:
    """Return what a rewind would leave behind, without moving anything."""
    return _outcome(session, preview_rewind(session=session, to=to))


def retire_memories(*, principal: Principal, memory_ids: tuple[str, ...], session: Session) -> int:
    """Forget the memories that were written from what a rewind left behind, in one change set that can be reverted."""
    if not memory_ids:
        return 0
    writer = Writer.of(principal, door="web", reason=f"rewound session {session.sid}")
    done = bulk_edit(writer=writer, wanted=MemoryFilter(ids=list(memory_ids)), action=BulkAction(forget=True))
    return done.changed


def _outcome(session: Session, moved: Rewound) -> RewindOutcome:
    return RewindOutcome(moved.head, len(moved.abandoned), tuple(_memories_after(session, moved)))


def _memories_after(session: Session, moved: Rewound) -> list[str]:
    """Return the living memories of this session that name an abandoned event, or none and are younger than the head."""
    if not moved.abandoned:
        return []
    kept = Memory.objects.filter(session=session).exclude(state__in=("forgotten", "erased"))
    from_there = Q(event_id="", created_at__gt=moved.at) | ~Q(event_id="")
    rows = kept.filter(from_there).order_by("created_at", "id").values_list("public_id", "event_id")
    gone = set(moved.abandoned)
    return [public_id for public_id, event_id in rows[: MOST_MEMORIES * 10] if not event_id or event_id in gone][
        :MOST_MEMORIES
    ]
