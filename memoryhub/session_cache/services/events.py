"""Appending to a session, moving its head, forking it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection

from memoryhub.common import clock, errors, ids
from memoryhub.session_cache.domain.context_window import call_ids
from memoryhub.session_cache.domain.event_tree import NOTE, BrokenBatch, Link, Node, order_batch
from memoryhub.session_cache.models import SessionEvent, SessionTree
from memoryhub.session_cache.queries import tree as tree_queries
from memoryhub.session_cache.queries.blobs import raw_contents_of
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.session_cache.services.tree_writer import NewEvent, TreeWriter, lock_tree
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.services import ensure_session

MAX_BATCH = 1000
ANY_HEAD: Final = object()


class BrokenParents(errors.Invalid):
    slug = "broken-parents"
    title = "These events can't be put in order"


class EventIdTaken(errors.Conflict):
    slug = "event-id-taken"
    title = "Another event has this id"


class HeadMoved(errors.Conflict):
    slug = "head-moved"
    title = "The session's head has moved"


class NoSuchPlace(errors.Invalid):
    slug = "no-such-place"
    title = "There is no such event to go to"


class SessionExists(errors.Conflict):
    slug = "session-exists"
    title = "There is a session of this id already"


@dataclass(frozen=True, slots=True)
class GivenEvent:
    """An event as the caller describes it."""

    kind: str
    content: Any
    id: str | None = None
    parent_id: str | None = None
    role: str | None = None
    tokens: int | None = None
    tool_call_id: str | None = None
    occurred_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventPlace:
    id: str
    parent_id: str | None
    depth: int


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the events of a batch hang, in the caller's order, and the session's head now."""

    items: tuple[EventPlace, ...]
    head: str | None


def append_events(*, session: Session, events: Sequence[GivenEvent], expected_head: Any = ANY_HEAD) -> Appended:
    """Hang a batch into the session's tree, all or nothing; the head moves to its last new conversation event.

    1. Lock the session's tree. 2. Look up the batch's ids and parents. 3. Refuse what can't be right: an id that stands
    for something else, a parent that is nowhere, a note, or in a circle. 4. Hang the new ones, parents first. 5. Write.
    An event that is there already, the same in every respect, is only reported: repeating a batch changes nothing.
    """
    if not 1 <= len(events) <= MAX_BATCH:
        raise errors.Invalid(f"A batch has 1 to {MAX_BATCH} events.")
    given = {event.id or ids.new_id("evt"): event for event in events}
    if len(given) != len(events):
        raise BrokenParents("The same id stands twice in this batch.")
    fresh = {event_id: _new_event(event_id, event) for event_id, event in given.items()}
    with write_transaction():
        tree = lock_tree(session)
        _check_head(tree, expected_head)
        named = [event_id for event_id, event in given.items() if event.id]  # ids made here are new
        mentioned = [*named, *(event.parent_id for event in events if event.parent_id)]
        known = tree_queries.find_events(session, tree, mentioned) if mentioned else {}
        repeated = _check_repeats(given, fresh, known)
        links = _order(given, known)
        if len(repeated) == len(given):
            return _report(given, known, {}, tree_queries.head_id(tree))
        places, head = _hang(session, tree, links, fresh, known)
        _touch(session)
    return _report(given, known, places, head)


def _touch(session: Session) -> None:
    now = connection.ops.adapt_datetimefield_value(clock.now())
    with connection.cursor() as cursor:
        cursor.execute(_TOUCH, [now, session.pk, now])


_TOUCH = "UPDATE workspaces_session SET last_active_at = %s WHERE id = %s AND last_active_at < %s"


def _new_event(event_id: str, event: GivenEvent) -> NewEvent:
    made, answered = call_ids(event.kind, event.content, event.tool_call_id or "")
    call = event.tool_call_id or next(iter([*made, *answered]), "")
    return NewEvent(
        event_id=event_id,
        kind=event.kind,
        content=content_bytes(event.content),
        role=event.role or _default_role(event.kind),
        tool_call_id=call[:200],
        tokens=event.tokens,
        occurred_at=event.occurred_at,
    )


def _default_role(kind: str) -> str:
    return {"tool_use": "assistant", "tool_result": "user", "compaction": "user", "message": "user"}.get(kind, "")


def content_bytes(content: Any) -> bytes:
    """Return the content's JSON with its members in the caller's order: their order is part of a cached prefix."""
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        raise errors.Invalid(f"A content can't be written as JSON: {error}.") from error


def _check_head(tree: SessionTree, expected: Any) -> None:
    if expected is ANY_HEAD:
        return
    head = tree_queries.head_id(tree)
    if head != expected:
        raise HeadMoved(f"The head is {head!r}, not {expected!r}.", head=head)


def _check_repeats(
    given: Mapping[str, GivenEvent], fresh: Mapping[str, NewEvent], known: Mapping[str, SessionEvent]
) -> list[str]:
    """Return the ids that are stored already; raise where one of them stands for something else."""
    repeated = [event_id for event_id in given if event_id in known]
    stored = raw_contents_of(known[event_id].blob_id for event_id in repeated)
    for event_id in repeated:
        was, now = known[event_id], fresh[event_id]
        parent_id = given[event_id].parent_id
        same = (was.kind, was.role, was.tool_call_id) == (now.kind, now.role, now.tool_call_id)
        if not same or stored[was.blob_id] != now.content or (parent_id and parent_id != was.parent_event_id):
            raise EventIdTaken(f"The session has another event with the id {event_id!r}.", event=event_id)
    return repeated


def _order(given: Mapping[str, GivenEvent], known: Mapping[str, SessionEvent]) -> list[Link]:
    for event_id, event in given.items():
        parent = known.get(event.parent_id) if event.parent_id else None
        if parent is not None and parent.kind == NOTE:
            raise BrokenParents(f"The parent of {event_id} is a note; only conversation events are.", event=event_id)
    links = [Link(event_id, event.parent_id, event.kind == NOTE) for event_id, event in given.items()]
    try:
        return order_batch(links, known)
    except BrokenBatch as error:
        raise BrokenParents(f"{error}.", event=error.event_id) from error


def _hang(
    session: Session,
    tree: SessionTree,
    links: Sequence[Link],
    fresh: Mapping[str, NewEvent],
    known: Mapping[str, SessionEvent],
) -> tuple[dict[str, EventPlace], str | None]:
    writer = TreeWriter(session, tree)
    writer.know(event.branch for event in known.values())
    nodes: dict[str, Node] = {
        event_id: tree_queries.node_of(event) for event_id, event in known.items() if event.kind != NOTE
    }
    head = tree_queries.head_event(tree)
    head_id, head_node = (head.event_id, tree_queries.node_of(head)) if head else (None, None)
    if head:
        writer.know([head.branch])
    start, moved = (head_id, head_node), None
    places: dict[str, EventPlace] = {}
    for link in links:
        parent_id, parent = start if link.parent_id is None else (link.parent_id, nodes[link.parent_id])
        node = writer.hang(fresh[link.event_id], parent, parent_id or "")
        places[link.event_id] = EventPlace(link.event_id, parent_id, node.depth)
        if not link.is_note:
            nodes[link.event_id] = node
    for event_id in fresh:  # the caller's order decides which event is the last
        if event_id in places and not fresh[event_id].is_note:
            head_id, moved = event_id, nodes[event_id]
    writer.write(moved)
    return places, head_id


def _report(
    given: Mapping[str, GivenEvent],
    known: Mapping[str, SessionEvent],
    places: Mapping[str, EventPlace],
    head: str | None,
) -> Appended:
    items = [
        places.get(event_id) or EventPlace(event_id, known[event_id].parent_event_id or None, known[event_id].depth)
        for event_id in given
    ]
    return Appended(tuple(items), head)


@dataclass(frozen=True, slots=True)
class Rewound:
    """The head after a rewind, and what it no longer sees: event ids, and since when."""

    head: str
    abandoned: tuple[str, ...]
    at: datetime


def rewind(*, session: Session, to: str) -> Rewound:
    """Move the head to an event of the session; nothing is copied or deleted."""
    with write_transaction():
        tree = lock_tree(session)
        target = _place_to_go(session, tree, to)
        old_path, node = tree.full_path, tree_queries.node_of(target)
        tree.head_branch_id, tree.head_seq = node.branch_id, node.seq
        tree.head_path = [list(stretch) for stretch in node.path]
        tree.save(update_fields=["head_branch", "head_seq", "head_path"])
    gone = tree_queries.abandoned_events(old_path, node.full_path)
    return Rewound(target.event_id, tuple(event.event_id for event in gone), target.occurred_at)


def preview_rewind(*, session: Session, to: str) -> Rewound:
    """Return what a rewind would leave behind, without moving anything."""
    tree = tree_queries.find_tree(session)
    target = _place_to_go(session, tree, to)
    old_path = tree.full_path if tree else ()
    gone = tree_queries.abandoned_events(old_path, tree_queries.node_of(target).full_path)
    return Rewound(target.event_id, tuple(event.event_id for event in gone), target.occurred_at)


def _place_to_go(session: Session, tree: SessionTree | None, event_id: str) -> SessionEvent:
    event = tree_queries.find_events(session, tree, [event_id]).get(event_id)
    if event is None:
        raise NoSuchPlace(f"The session has no event {event_id[:200]!r}.")
    if event.kind == NOTE:
        raise NoSuchPlace(f"{event_id[:200]!r} is a note; go to the conversation event that it hangs on.")
    return event


def fork_session(*, workspace: Workspace, session: Session, at: str | None, sid: str) -> Session:
    """Start a session that shares the past of an event (default: the head). Costs three rows, whatever the past's length."""
    with write_transaction():
        tree = lock_tree(session)  # nobody lets go of the past that is about to be shared
        event = _place_to_go(session, tree, at) if at else tree_queries.head_event(tree)
        if event is None:
            raise NoSuchPlace("A session without events can't be forked.")
        node = tree_queries.node_of(event)
        is_new = not Session.objects.filter(workspace=workspace, sid=sid).exists()
        agent = session.agent.name if session.agent and is_new else None
        forked = ensure_session(workspace=workspace, sid=sid, agent=agent, **(_description(session) if is_new else {}))
        new_tree = lock_tree(forked)
        if new_tree.head_branch_id is not None:
            if (new_tree.origin_branch_id, new_tree.origin_seq) == (
                node.branch_id,
                node.seq,
            ) and not new_tree.event_count:
                return forked  # the same fork, asked for again
            raise SessionExists(f"The session {sid[:200]!r} has events already.")
        SessionTree.objects.filter(pk=new_tree.pk).update(
            head_branch_id=node.branch_id,
            head_seq=node.seq,
            head_path=[list(stretch) for stretch in node.path],
            origin_branch_id=node.branch_id,
            origin_seq=node.seq,
        )
    return forked


def _description(session: Session) -> dict[str, Any]:
    return {"user": session.user, "project": session.project}
