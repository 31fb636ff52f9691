"""The context window at a node: stretches of branches, newest first, until the last compaction or the budget."""

from dataclasses import dataclass

from memoryhub.session_cache.domain.context_window import Unpaired, WindowEvent, cut_at_compaction, find_unpaired
from memoryhub.session_cache.domain.event_tree import Path
from memoryhub.session_cache.models import SessionEvent
from memoryhub.session_cache.queries import tree
from memoryhub.session_cache.queries.blobs import decode
from memoryhub.session_cache.queries.stretches import backwards
from memoryhub.workspaces.models import Session

_FIELDS = (
    "event_id", "kind", "role", "tool_call_id", "tokens", "branch_id", "seq", "blob__codec", "blob__data",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Window:
    """The exact sequence at a node. `complete` is false where a budget cut off its beginning."""

    at: str | None
    prefix_hash: bytes
    events: tuple[WindowEvent, ...]
    unpaired: Unpaired
    complete: bool = True

    @property
    def tokens(self) -> int:
        return sum(event.tokens for event in self.events)


EMPTY = Window(None, b"", (), Unpaired((), ()))


def get_window(
    session: Session, *, at: str | None = None, max_tokens: int | None = None, max_events: int | None = None
) -> Window:
    """Return the window at an event, by default at the head."""
    session_tree = tree.find_tree(session)
    node_event = tree.head_event(session_tree) if at is None else tree.get_event(session, at)
    if node_event is None:
        return EMPTY
    node_event = tree.conversation_node(session, session_tree, node_event)
    path = tree.node_of(node_event).full_path
    events, complete, cut_path = _collect(path, max_tokens, max_events)
    if cut_path:
        events = [*_system_texts(cut_path), *events]
    events = cut_at_compaction(events)
    return Window(node_event.event_id, bytes(node_event.prefix_hash), tuple(events), find_unpaired(events), complete)


def _collect(path: Path, max_tokens: int | None, max_events: int | None) -> tuple[list[WindowEvent], bool, Path]:
    """Walk back from the node; return the events in order, whether all are there, and what lies before a compaction."""
    newest_first: list[WindowEvent] = []
    take = newest_first.append
    tokens = 0
    for index in range(len(path) - 1, -1, -1):
        branch, upto = path[index]
        left = None if max_events is None else max_events - len(newest_first)
        for event, seq in backwards(branch, upto, most=left):
            over_tokens = max_tokens is not None and newest_first and tokens + event.tokens > max_tokens
            if over_tokens or (max_events is not None and len(newest_first) >= max_events):
                return newest_first[::-1], False, ()
            take(event)
            tokens += event.tokens
            if event.kind == "compaction":
                before = (*path[:index], (branch, seq - 1)) if seq > 1 else path[:index]
                return newest_first[::-1], True, before
    return newest_first[::-1], True, ()


def _system_texts(path: Path) -> list[WindowEvent]:
    """Return the system texts before a compaction: one indexed query, however long the past is."""
    rows = SessionEvent.objects.along(path).filter(role="system").exclude(kind="compaction").order_by("id")
    return [
        WindowEvent(event_id, kind, role, decode(codec, data), call, tokens)
        for event_id, kind, role, call, tokens, _, _, codec, data in rows.values_list(*_FIELDS)
    ]
