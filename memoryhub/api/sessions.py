"""Sessions: their description, their event tree, the context window at a node, rewind and fork."""

import base64
import binascii
import json
from typing import Annotated, Any, Literal

from django.http import HttpResponse
from ninja import Body, Query, Router, Status
from pydantic import Field

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.base import GivenTime
from memoryhub.api.schemas.sessions import (
    MAX_EVENTS,
    AppendedOut,
    ContextOut,
    EventIn,
    EventOut,
    EventPage,
    EventsIn,
    ForkIn,
    ForkOut,
    RewindIn,
    RewindOut,
    SessionIn,
    SessionOut,
    SessionPage,
)
from memoryhub.common.keyset import BadCursor
from memoryhub.flows.rewind import preview_rewind_session, rewind_session
from memoryhub.session_cache.domain.context_window import to_anthropic
from memoryhub.session_cache.queries import blobs, sessions, tree
from memoryhub.session_cache.queries.windows import Window, get_window
from memoryhub.session_cache.services.events import ANY_HEAD, append_events, fork_session
from memoryhub.session_cache.services.sessions import describe_session, open_session

router = Router(tags=["Sessions"])

Events = EventIn | Annotated[list[EventIn], Field(min_length=1, max_length=MAX_EVENTS)] | EventsIn


@router.put(
    "/sessions/{sid}",
    auth=requires("cache:write"),
    response=SessionOut,
    operation_id="describeSession",
    summary="Create a session or describe it anew",
)
def put_session(request: ApiRequest, sid: str, body: SessionIn) -> Any:
    """`sid` is your own id. Repeating it changes nothing; a session exists from its first use, this only describes it."""
    session = describe_session(
        principal=request.principal,
        sid=sid,
        agent=body.agent,
        user=body.user,
        project=body.project,
        title=body.title,
        metadata=body.metadata,
        tool_capacity_bytes=body.tool_capacity_bytes,
    )
    return _session_out(session)


@router.get(
    "/sessions",
    auth=requires("cache:read"),
    response=SessionPage,
    operation_id="listSessions",
    summary="List sessions, the last active first",
)
def list_sessions(
    request: ApiRequest,
    limit: Limit,
    cursor: Cursor = None,
    agent: str | None = None,
    user: str | None = None,
    project: str | None = None,
    since: GivenTime | None = None,
) -> Any:
    """Sessions that were active at or after `since`, of one agent, user or project where named."""
    found = sessions.list_sessions(request.principal, agent=agent, user=user, project=project, since=since)
    order = [("last_active_at", "desc"), ("id", "desc")]
    return page(found, order=order, cursor=cursor, limit=limit, shape=SessionOut.of)


@router.get(
    "/sessions/{sid}",
    auth=requires("cache:read"),
    response=SessionOut,
    operation_id="getSession",
    summary="Read one session",
)
def get_session(request: ApiRequest, sid: str) -> Any:
    """What describes the session, where it stands, and how much it holds."""
    return _session_out(sessions.get_session(request.principal, sid))


def _session_out(session: Any) -> SessionOut:
    return SessionOut.of(session, tree.head_id(tree.find_tree(session)))


@router.post(
    "/sessions/{sid}/events",
    auth=requires("cache:write"),
    response={201: AppendedOut},
    operation_id="appendEvents",
    summary="Append events",
)
def post_events(request: ApiRequest, sid: str, body: Annotated[Events, Body()]) -> Any:
    """One event, a list, or `{events, expected_head}`; all or nothing, idempotent on `id`. The head moves to the last one.

    An event whose parent is not the head's tip starts a branch. Notes (progress, retries) are nobody's parent.
    """
    expected: Any = ANY_HEAD
    if isinstance(body, EventsIn):
        given = body.events
        expected = body.expected_head if "expected_head" in body.model_fields_set else ANY_HEAD
    else:
        given = body if isinstance(body, list) else [body]
    session = open_session(principal=request.principal, sid=sid)
    done = append_events(session=session, events=[event.given() for event in given], expected_head=expected)
    return Status(201, AppendedOut.of(done))


@router.get(
    "/sessions/{sid}/events",
    auth=requires("cache:read"),
    response=EventPage,
    operation_id="listEvents",
    summary="List events in the order in which they came",
)
def list_events(request: ApiRequest, sid: str, limit: Limit, cursor: Cursor = None, branch: str | None = None) -> Any:
    """All that the session can see, abandoned branches too; with `branch` only the way from the root to that event."""
    session = sessions.get_session(request.principal, sid)
    rows, after = tree.list_events(session, branch_of=branch, after=_position(cursor), limit=limit)
    contents = blobs.contents_of(row.blob_id for row in rows)
    items = [EventOut.of(row, contents[row.blob_id]) for row in rows]
    return {"items": items, "next_cursor": _cursor(after) if after else None}


def _cursor(after: tuple[int, int]) -> str:
    return base64.urlsafe_b64encode(f"{after[0]}.{after[1]}".encode()).decode().rstrip("=")


def _position(cursor: str | None) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        stretch, position = (int(part) for part in text.split("."))
        if not (0 <= stretch < 2**31 and 0 <= position < 2**62):
            raise ValueError
    except (ValueError, binascii.Error) as error:
        raise BadCursor("Use the next_cursor of the same list.") from error
    return stretch, position


@router.get(
    "/sessions/{sid}/context",
    auth=requires("cache:read"),
    response=ContextOut,
    operation_id="getContext",
    summary="Rebuild the context window at a node",
)
def get_context(
    request: ApiRequest,
    sid: str,
    at: str | None = None,
    format: Literal["anthropic", "raw"] = "anthropic",
    max_tokens: Annotated[int | None, Query(None, ge=1)] = None,
    max_events: Annotated[int | None, Query(None, ge=1, le=100_000)] = None,
) -> Any:
    """The exact sequence from the root to the event (default: the head), cut at the last compaction.

    The same node always gives the same bytes, so a rebuilt window hits the provider's prompt cache.
    """
    session = sessions.get_session(request.principal, sid)
    window = get_window(session, at=at, max_tokens=max_tokens, max_events=max_events)
    shaped = to_anthropic(window.events) if format == "anthropic" else {"events": _raw(window)}
    body = {"at": window.at, **shaped, **_facts(window)}
    # Written directly: checking a window of ours against a schema would cost more than rebuilding it.
    return HttpResponse(
        json.dumps(body, ensure_ascii=False, separators=(",", ":")), content_type="application/json; charset=utf-8"
    )


def _raw(window: Window) -> list[dict[str, Any]]:
    return [
        {
            "id": event.id,
            "kind": event.kind,
            "role": event.role or None,
            "content": event.content,
            "tokens": event.tokens,
            "tool_call_id": event.tool_call_id or None,
        }
        for event in window.events
    ]


def _facts(window: Window) -> dict[str, Any]:
    return {
        "tokens": window.tokens,
        "complete": window.complete,
        "prefix_hash": window.prefix_hash.hex(),
        "unpaired": {
            "tool_uses": list(window.unpaired.tool_uses),
            "tool_results": list(window.unpaired.tool_results),
        },
    }


@router.post(
    "/sessions/{sid}/rewind",
    auth=requires("cache:write"),
    response=RewindOut,
    operation_id="rewindSession",
    summary="Move the session's head to an event",
)
def post_rewind(request: ApiRequest, sid: str, body: RewindIn) -> Any:
    """Nothing is copied or deleted. `memories_after` names the memories that were written from what is left behind."""
    session = sessions.get_session(request.principal, sid)
    act = preview_rewind_session if body.dry_run else rewind_session
    outcome = act(session=session, to=body.to)
    return RewindOut(
        head=outcome.head,
        memories_after=list(outcome.memory_ids),
        abandoned_events=outcome.abandoned_count,
        dry_run=body.dry_run,
    )


@router.post(
    "/sessions/{sid}/fork",
    auth=requires("cache:write"),
    response={201: ForkOut},
    operation_id="forkSession",
    summary="Start a session that shares this one's past",
)
def post_fork(request: ApiRequest, sid: str, body: ForkIn) -> Any:
    """The new session sees everything up to the event; from there on neither sees what the other adds."""
    session = sessions.get_session(request.principal, sid)
    forked = fork_session(workspace=request.principal.workspace, session=session, at=body.at, sid=body.session)
    described = _session_out(forked)
    fork = ForkOut(
        session=described.sid,
        head=described.head,
        forked_from=session.sid,
        agent=described.agent,
        user=described.user,
        project=described.project,
    )
    return Status(201, fork)
