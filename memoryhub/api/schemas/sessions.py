"""Shapes of sessions, their events and their context windows."""

from typing import Annotated, Any, Literal

from ninja import Field, Schema

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.session_cache.models import SessionEvent
from memoryhub.session_cache.services.events import Appended, EventPlace, GivenEvent
from memoryhub.workspaces.models import Session

Kind = Literal["message", "tool_use", "tool_result", "compaction", "note"]
Id = Annotated[str, Field(min_length=1, max_length=200)]
MAX_EVENTS = 1000


class SessionIn(InShape):
    """What describes a session; what is left out stays as it is."""

    agent: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    user: Annotated[str, Field(max_length=200)] | None = None
    project: Annotated[str, Field(max_length=500)] | None = None
    title: Annotated[str, Field(max_length=300)] | None = None
    metadata: dict[str, Any] | None = None
    tool_capacity_bytes: Annotated[int, Field(ge=1024, le=2**40)] | None = Field(
        None, description="What this session's tool results may take; 50 MiB unless set."
    )


class SessionOut(Schema):
    sid: str
    agent: str | None
    user: str | None
    project: str | None
    title: str | None
    metadata: dict[str, Any]
    created_at: UtcTime
    last_active_at: UtcTime
    head: str | None = None
    event_count: int = 0
    tokens: int = 0

    @staticmethod
    def of(session: Session, head: str | None = None) -> "SessionOut":
        tree = getattr(session, "tree", None)
        return SessionOut(
            sid=session.sid,
            agent=session.agent.name if session.agent else None,
            user=session.user or None,
            project=session.project or None,
            title=session.title or None,
            metadata=session.metadata,
            created_at=session.created_at,
            last_active_at=session.last_active_at,
            head=head,
            event_count=tree.event_count if tree else 0,
            tokens=tree.token_count if tree else 0,
        )


class SessionPage(Schema):
    items: list[SessionOut]
    next_cursor: str | None


class EventIn(InShape):
    """One event. Without `parent_id` it follows the one before it in the list, the first one the session's head."""

    id: Id | None = None
    parent_id: Id | None = None
    kind: Kind
    role: Annotated[str, Field(max_length=16)] | None = None
    content: Any
    tokens: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(None, description="Estimated if left out.")
    tool_call_id: Annotated[str, Field(max_length=200)] | None = None
    occurred_at: GivenTime | None = None

    def given(self) -> GivenEvent:
        return GivenEvent(
            kind=self.kind,
            content=self.content,
            id=self.id,
            parent_id=self.parent_id,
            role=self.role,
            tokens=self.tokens,
            tool_call_id=self.tool_call_id,
            occurred_at=self.occurred_at,
        )


class EventsIn(InShape):
    """A batch that is stored only while the session's head is where the caller saw it (null: before any event)."""

    events: Annotated[list[EventIn], Field(min_length=1, max_length=MAX_EVENTS)]
    expected_head: str | None = None


class PlaceOut(Schema):
    id: str
    parent_id: str | None
    depth: int

    @staticmethod
    def of(place: EventPlace) -> "PlaceOut":
        return PlaceOut(id=place.id, parent_id=place.parent_id, depth=place.depth)


class AppendedOut(Schema):
    items: list[PlaceOut]
    head: str | None

    @staticmethod
    def of(done: Appended) -> "AppendedOut":
        return AppendedOut(items=[PlaceOut.of(item) for item in done.items], head=done.head)


class EventOut(Schema):
    id: str
    parent_id: str | None
    kind: str
    role: str | None
    content: Any
    tokens: int
    tool_call_id: str | None
    depth: int
    branch: int = Field(description="Events of one branch share it.")
    occurred_at: UtcTime

    @staticmethod
    def of(event: SessionEvent, content: Any) -> "EventOut":
        return EventOut(
            id=event.event_id,
            parent_id=event.parent_event_id or None,
            kind=event.kind,
            role=event.role or None,
            content=content,
            tokens=event.tokens,
            tool_call_id=event.tool_call_id or None,
            depth=event.depth,
            branch=event.branch_id,
            occurred_at=event.occurred_at,
        )


class EventPage(Schema):
    items: list[EventOut]
    next_cursor: str | None


class ContextOut(Schema):
    """With `format=anthropic`: `system` and `messages`, as the Messages API takes them. With `raw`: `events`."""

    at: str | None
    system: Any = None
    messages: list[dict[str, Any]] | None = None
    events: list[dict[str, Any]] | None = None
    tokens: int
    complete: bool = Field(description="False where a budget cut off the beginning.")
    prefix_hash: str = Field(description="Stands for the whole sequence: equal hashes, equal sequences.")
    unpaired: dict[str, list[str]] = Field(description="Tool calls whose result is missing, and the other way round.")


class RewindIn(InShape):
    to: Id
    dry_run: bool = False


class RewindOut(Schema):
    head: str
    memories_after: list[str]
    abandoned_events: int
    dry_run: bool = False


class ForkIn(InShape):
    session: Id
    at: Id | None = Field(None, description="The head, if left out.")


class ForkOut(Schema):
    session: str
    head: str | None
    forked_from: str
    agent: str | None
    user: str | None
    project: str | None
