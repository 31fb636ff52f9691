"""Importing events that happened elsewhere: idempotent on their ids, and never failing for a missing parent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from memoryhub.session_cache.domain.event_tree import NOTE, Node
from memoryhub.session_cache.domain.transcript_events import ImportedEvent
from memoryhub.session_cache.models import SessionEvent, SessionTree
from memoryhub.session_cache.queries import tree as tree_queries
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.session_cache.services.tree_writer import NewEvent, TreeWriter, lock_tree
from memoryhub.workspaces.models import Session, Workspace

CHUNK = 2000  # events of one transaction: other writers wait at most some tens of milliseconds


@dataclass(slots=True)
class ImportReport:
    """How many events were new, how many were there already, and how many lost their parent and became roots."""

    created: int = 0
    known: int = 0
    orphans: int = 0


@dataclass(slots=True)
class _Places:
    """What a chunk may hang on: conversation nodes by id, and notes by the conversation event that they hang on."""

    nodes: dict[str, Node] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def resolve(self, event_id: str | None) -> tuple[str, Node] | None:
        while event_id in self.notes:
            event_id = self.notes[event_id]
        node = self.nodes.get(event_id or "")
        return (event_id, node) if event_id and node else None


def import_events(*, workspace: Workspace, session: Session, events: Iterable[ImportedEvent]) -> ImportReport:
    """Hang events into the session's tree, chunk by chunk; importing them again changes nothing.

    A parent that is not there makes the event a root of its own; a circle is cut at its first event. The head moves to
    the last conversation event that is not a sub-agent's, unless the session already stands at a later one.
    """
    if session.workspace_id != workspace.pk:
        raise tree_queries.UnknownSession("The session belongs to another workspace.")
    report = ImportReport()
    waiting = iter(events)
    while chunk := list(islice(waiting, CHUNK)):
        with write_transaction():
            _import_chunk(session, chunk, report)
    return report


def _import_chunk(session: Session, chunk: list[ImportedEvent], report: ImportReport) -> None:
    tree = lock_tree(session)
    batch = {event.event_id: event for event in reversed(chunk)}
    batch = dict(reversed(batch.items()))  # of the same id twice, the first one counts
    parents = [event.parent_id for event in batch.values() if event.parent_id and event.parent_id not in batch]
    stored = tree_queries.find_events(session, tree, [*batch, *parents])
    fresh = {event_id: event for event_id, event in batch.items() if event_id not in stored}
    report.known += len(chunk) - len(fresh)
    if not fresh:
        return
    writer = TreeWriter(session, tree)
    places = _known_places(session, tree, stored, writer)
    last: tuple[Node, datetime | None] | None = None
    for event in _parents_first(fresh):
        found = places.resolve(event.parent_id)
        if event.parent_id and found is None and event.parent_id not in places.notes:
            report.orphans += 1
        parent_id, parent = found or ("", None)
        node = writer.hang(_new(event), parent, parent_id)
        if event.kind == NOTE:
            places.notes[event.event_id] = parent_id
            continue
        places.nodes[event.event_id] = node
        if not event.is_side:
            last = (node, event.occurred_at)
    report.created += len(fresh)
    writer.write(_new_head(tree, last))


def _new(event: ImportedEvent) -> NewEvent:
    return NewEvent(
        event_id=event.event_id,
        kind=event.kind,
        content=event.content,
        role=event.role[:16],
        tool_call_id=event.tool_call_id,
        tokens=event.tokens,
        occurred_at=event.occurred_at,
    )


def _known_places(
    session: Session, tree: SessionTree, stored: Mapping[str, SessionEvent], writer: TreeWriter
) -> _Places:
    places = _Places()
    writer.know(event.branch for event in stored.values())
    hanging = [event.parent_event_id for event in stored.values() if event.kind == NOTE and event.parent_event_id]
    beneath = tree_queries.find_events(session, tree, [event_id for event_id in hanging if event_id not in stored])
    writer.know(event.branch for event in beneath.values())
    for event in (*stored.values(), *beneath.values()):
        if event.kind == NOTE:
            places.notes[event.event_id] = event.parent_event_id
        else:
            # One Branch object per branch, the writer's own: its tip moves while the chunk is hung.
            places.nodes[event.event_id] = tree_queries.node_of(event)
    return places


def _parents_first(fresh: Mapping[str, ImportedEvent]) -> list[ImportedEvent]:
    """Return the events so that parents come before their children wherever the chunk has both; circles are cut."""
    ordered: dict[str, ImportedEvent] = {}
    for start in fresh.values():
        way: dict[str, ImportedEvent] = {}
        event: ImportedEvent | None = start
        while event is not None and event.event_id not in ordered and event.event_id not in way:
            way[event.event_id] = event
            event = fresh.get(event.parent_id or "")
        ordered.update(reversed(way.items()))
    return list(ordered.values())


def _new_head(tree: SessionTree, last: tuple[Node, datetime | None] | None) -> Node | None:
    if last is None:
        return None
    node, occurred_at = last
    head = tree_queries.head_event(tree)
    if head is not None and occurred_at is not None and head.occurred_at > occurred_at:
        return None
    return node
