"""Reads of the event tree: where a session stands, where an event hangs, what a list shows."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

from memoryhub.common import errors
from memoryhub.session_cache.domain import event_tree
from memoryhub.session_cache.domain.event_tree import Node, Path
from memoryhub.session_cache.models import Branch, SessionEvent, SessionTree
from memoryhub.workspaces.models import Session, Workspace

_CHUNK = 900  # parameters of one IN list: below the smallest limit of SQLite builds


class UnknownSession(errors.NotFound):
    slug = "unknown-session"
    title = "Unknown session"


class UnknownEvent(errors.NotFound):
    slug = "unknown-event"
    title = "Unknown event"


def get_session(workspace: Workspace, sid: str) -> Session:
    """Return the session of the caller's own id."""
    try:
        return Session.objects.select_related("agent").get(workspace=workspace, sid=sid)
    except Session.DoesNotExist as error:
        raise UnknownSession(f"There is no session {sid[:200]!r} in this workspace.") from error


def find_tree(session: Session) -> SessionTree | None:
    """Return where the session stands, or None before its first event."""
    return SessionTree.objects.filter(session=session).first()


def origin_path(tree: SessionTree | None) -> Path:
    """Return the past that a fork shares with the session that it grew from."""
    if tree is None or tree.origin_branch_id is None:
        return ()
    branch = Branch.objects.only("id", "path").get(pk=tree.origin_branch_id)
    return (*branch.inherited, (branch.pk, tree.origin_seq))


def find_events(session: Session, tree: SessionTree | None, event_ids: Iterable[str]) -> dict[str, SessionEvent]:
    """Return the events of these ids that the session can see: its own, and those of a fork's shared past."""
    wanted = list(dict.fromkeys(event_ids))
    found: dict[str, SessionEvent] = {}
    shared = origin_path(tree)
    ancestors = list(
        Branch.objects.filter(pk__in=[branch for branch, _ in shared]).values_list("session_id", flat=True).distinct()
    )
    for start in range(0, len(wanted), _CHUNK):
        ids = wanted[start : start + _CHUNK]
        events = SessionEvent.objects.filter(session_id__in=[session.pk, *ancestors], event_id__in=ids)
        for event in events.select_related("branch"):
            if event.session_id == session.pk or event_tree.sees(shared, event.branch_id, event.seq):
                found[event.event_id] = event
    return found


def get_event(session: Session, event_id: str) -> SessionEvent:
    """Return one event that the session can see."""
    found = find_events(session, find_tree(session), [event_id])
    if event_id not in found:
        raise UnknownEvent(f"The session has no event {event_id[:200]!r}.")
    return found[event_id]


def node_of(event: SessionEvent) -> Node:
    """Return the conversation event's place, for hanging something below it."""
    branch = event.branch
    return Node(
        branch_id=branch.pk,
        seq=event.seq,
        depth=event.depth,
        prefix_hash=bytes(event.prefix_hash),
        path=branch.inherited,
    )


def head_event(tree: SessionTree | None) -> SessionEvent | None:
    """Return the event that the session stands at."""
    if tree is None or tree.head_branch_id is None:
        return None
    return (
        SessionEvent.objects.select_related("branch").filter(branch_id=tree.head_branch_id, seq=tree.head_seq).first()
    )


def head_id(tree: SessionTree | None) -> str | None:
    """Return the public id of the head."""
    event = head_event(tree)
    return event.event_id if event else None


def find_tips(session: Session, *, limit: int) -> list[str]:
    """Return the public ids of the ends of the session's ways: its head first, then the newest branches' last events."""
    head = head_event(find_tree(session))
    branches = (
        Branch.objects.filter(session=session, tip_seq__gt=0).order_by("-id").values_list("id", "tip_seq")[:limit]
    )
    ends = Q(pk__in=[])
    for branch, tip in branches:
        ends |= Q(branch_id=branch, seq=tip)
    tips = SessionEvent.objects.filter(ends).order_by("-id").values_list("event_id", flat=True)
    return list(dict.fromkeys([*([head.event_id] if head else []), *tips]))[:limit]


def conversation_node(session: Session, tree: SessionTree | None, event: SessionEvent) -> SessionEvent:
    """Return the event itself, or for a note the conversation event that it hangs on."""
    if event.kind != event_tree.NOTE:
        return event
    parent = find_events(session, tree, [event.parent_event_id]).get(event.parent_event_id)
    if parent is None:
        raise UnknownEvent(f"The note {event.event_id[:200]!r} hangs on nothing.")
    return parent


def list_segments(session: Session, *, branch_of: str | None) -> list[Path | None]:
    """Return the stretches that a list of events walks through, in order; None stands for all of the session's own."""
    tree = find_tree(session)
    if branch_of is None:
        return [*((stretch,) for stretch in origin_path(tree)), None]
    event = conversation_node(session, tree, get_event(session, branch_of))
    return [(stretch,) for stretch in node_of(event).full_path]


def list_events(
    session: Session, *, branch_of: str | None = None, after: Sequence[int] = (0, 0), limit: int = 50
) -> tuple[list[SessionEvent], tuple[int, int] | None]:
    """Return a page of events in the order in which they came, and where the next page begins.

    Without `branch_of`: everything that the session can see, abandoned branches too. With it: the way to that event.
    `after` is (stretch, last position in it); each page reads ranges of an index only.
    """
    segments = list_segments(session, branch_of=branch_of)
    stretch, position = after
    rows: list[SessionEvent] = []
    while stretch < len(segments):
        batch = _segment_rows(session, segments[stretch], position, limit + 1 - len(rows))
        for event in batch:
            if len(rows) == limit:
                return rows, (stretch, position)
            rows.append(event)
            position = event.pk if segments[stretch] is None else event.seq
        if len(rows) == limit and stretch + 1 < len(segments):
            return rows, (stretch + 1, 0)
        stretch, position = stretch + 1, 0
    return rows, None


def _segment_rows(session: Session, segment: Path | None, position: int, limit: int) -> list[SessionEvent]:
    if segment is None:
        own = SessionEvent.objects.filter(session=session, id__gt=position).order_by("id")
        return list(own[:limit])
    ((branch, upto),) = segment
    return list(SessionEvent.objects.filter(branch_id=branch, seq__gt=position, seq__lte=upto).order_by("seq")[:limit])


def abandoned_events(old: Path, new: Path, *, limit: int = 10_000) -> list[SessionEvent]:
    """Return what the old node sees and the new one does not, the oldest first."""
    rows: list[SessionEvent] = []
    for branch, first, last in event_tree.abandoned(old, new):
        stretch = SessionEvent.objects.filter(branch_id=branch, seq__gte=first, seq__lte=last).order_by("seq")
        rows.extend(stretch[: limit - len(rows)])
    return rows
