"""Tool results of a session: look up, put, list, remove, figures."""

from typing import Annotated, Any

from django.conf import settings
from django.http import HttpResponse
from ninja import Query, Router, Status

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.tool_results import (
    LookupIn,
    LookupOut,
    NotStoredOut,
    PutIn,
    StatsOut,
    StoredOut,
    ToolResultOut,
    ToolResultPage,
    render_answer,
    render_stored,
)
from memoryhub.flows.store_tool_result import put_and_announce
from memoryhub.session_cache.queries import sessions, tool_results
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.look_up import look_up
from memoryhub.session_cache.services.sessions import open_session
from memoryhub.session_cache.services.store import remove_tool_result
from memoryhub.workspaces.principals import MissingScope

router = Router(tags=["Tool results"])


@router.post(
    "/sessions/{sid}/tool-results/lookup",
    auth=requires("cache:read"),
    response=LookupOut,
    operation_id="lookUpToolResult",
    summary="Look up a tool result",
)
def post_lookup(request: ApiRequest, sid: str, body: LookupIn) -> Any:
    """A hit with its proof, or a miss with its reason.

    `validate` asks you to look up again with the fingerprints of the files named; `wait` says that somebody else computes it.
    """
    principal = request.principal
    options = body.options()
    may_write = principal.allows("cache:write")
    if options.wants_lease and not may_write:
        raise MissingScope("A lease is the right to store: it needs the scope cache:write.")
    if principal.is_bound:
        open_session(principal=principal, sid=sid)
    answer = look_up(workspace=principal.workspace, call=body.call(sid), options=options, may_write=may_write)
    return HttpResponse(render_answer(answer), content_type="application/json")


@router.put(
    "/sessions/{sid}/tool-results",
    auth=requires("cache:write"),
    response={201: StoredOut, 200: NotStoredOut},
    operation_id="putToolResult",
    summary="Store what a tool answered",
)
def put_tool_result(request: ApiRequest, sid: str, body: PutIn) -> Any:
    """Stored (201), or not, with the reason (200). A tool whose policy names what it changes invalidates that here.

    A tool without a policy may have changed any file: results from before it have to prove theirs (`unknown_write`).
    """
    call, given = body.call(sid), body.given()
    session = open_session(principal=request.principal, sid=sid)
    done, invalidated = put_and_announce(principal=request.principal, session=session, call=call, given=given)
    return HttpResponse(
        render_stored(done, invalidated), status=201 if done.stored else 200, content_type="application/json"
    )


@router.get(
    "/sessions/{sid}/tool-results",
    auth=requires("cache:read"),
    response=ToolResultPage,
    operation_id="listToolResults",
    summary="List a session's stored results, the newest first",
)
def list_tool_results(
    request: ApiRequest,
    sid: str,
    limit: Limit,
    cursor: Cursor = None,
    tool: Annotated[str | None, Query(None, max_length=200)] = None,
    q: Annotated[str, Query("", max_length=200, description="A text in the parameters or dependencies.")] = "",
) -> Any:
    """Entries without their values: parameters (secrets hidden), dependencies, hits, size, age."""
    session = sessions.get_session(request.principal, sid)
    usage.flush()
    entries = tool_results.list_entries(request.principal.workspace, sid=session.sid, tool=tool, text=q.strip())
    return page(entries, order=[("id", "desc")], cursor=cursor, limit=limit, shape=ToolResultOut.of)


@router.get(
    "/sessions/{sid}/tool-results/stats",
    auth=requires("cache:read"),
    response=StatsOut,
    operation_id="getToolResultStats",
    summary="How well a session's cache does",
)
def get_stats(request: ApiRequest, sid: str) -> Any:
    """Hits, misses by reason, evictions, bytes and time saved; in all and by tool."""
    session = sessions.get_session(request.principal, sid)
    usage.flush()
    return tool_results.summarize_session(session, default_capacity_bytes=settings.TOOL_CACHE_SESSION_BYTES)


@router.delete(
    "/sessions/{sid}/tool-results/{key}",
    auth=requires("cache:write"),
    response={204: None},
    operation_id="deleteToolResult",
    summary="Remove one stored result",
)
def delete_tool_result(request: ApiRequest, sid: str, key: str) -> Any:
    """The next look-up is a miss with the reason `invalidated`."""
    session = sessions.get_session(request.principal, sid)
    entry = tool_results.get_entry(request.principal.workspace, session.sid, key)
    remove_tool_result(entry=entry)
    return Status(204, None)
