"""The tools, as plain functions over the same services as every other door."""

import json
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memoryhub.common import errors
from memoryhub.common.keyset import Order, cut
from memoryhub.flows.invalidate import announce_write
from memoryhub.flows.remember import remember_with_neighbours
from memoryhub.long_term_memory import queries, services
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services.files import scope_of_files
from memoryhub.mcp_server.shapes import (
    CachedResult,
    ChangedMemory,
    FoundMemories,
    ListedMemories,
    LoggedEvent,
    LoggedEvents,
    MemoryShape,
    SavedMemory,
    StoredResult,
)
from memoryhub.session_cache.services.calls import ToolCall, parse_given
from memoryhub.session_cache.services.events import GivenEvent, append_events
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.sessions import describe_session, open_session
from memoryhub.session_cache.services.store import ToolValue, store_tool_result
from memoryhub.workspaces.principals import Principal

caller: ContextVar[Principal] = ContextVar("mcp_caller")

Text = Annotated[str, Field(min_length=1, max_length=102_400)]
Name = Annotated[str | None, Field(None, max_length=500)]
MemoryId = Annotated[str, Field(description="A memory's id, mem_...", max_length=200)]
Version = Annotated[int | None, Field(None, ge=1, description="Fails when the memory is another version by now.")]
EventKind = Literal["message", "tool_use", "tool_result", "compaction", "note"]
Kind = Literal["episodic", "semantic", "procedural"]
Importance = Annotated[float | None, Field(None, ge=0, le=1)]
Tags = Annotated[list[str] | None, Field(None, max_length=100)]
SessionId = Annotated[str, Field(description="Your own id of the conversation.", min_length=1, max_length=200)]
Facts = Annotated[
    list[dict[str, Any]] | None,
    Field(None, max_length=1000, description="Files, directories, urls, tags or versions, as the API describes them."),
]


class Scope(BaseModel):
    """Whom a memory belongs to; the same as naming agent, user and project one by one."""

    model_config = ConfigDict(extra="forbid")

    agent: str | None = Field(default=None, max_length=200)
    user: str | None = Field(default=None, max_length=200)
    project: str | None = Field(default=None, max_length=500)


class LogEntry(BaseModel):
    """One of several events."""

    model_config = ConfigDict(extra="forbid")

    content: Any
    kind: EventKind = "message"
    role: str | None = Field(default=None, max_length=40)
    id: str | None = Field(default=None, max_length=200)
    parent_id: str | None = Field(default=None, max_length=200)
    tokens: int | None = Field(default=None, ge=0)


def _allowed(scope: str) -> Principal:
    principal = caller.get()
    principal.require(scope)
    return principal


def _writer(scope: str) -> services.Writer:
    return services.Writer.of(_allowed(scope), door="mcp")


def _names(scope: Scope | None, agent: str | None, user: str | None, project: str | None) -> ScopeNames:
    """The scope as one object or by its parts; a part named twice must be the same."""
    whole = scope or Scope()
    for name, part in (("agent", agent), ("user", user), ("project", project)):
        if part and getattr(whole, name) not in (None, part):
            raise errors.Invalid(f"scope.{name} and {name} differ.")
    return ScopeNames(agent or whole.agent or None, user or whole.user or None, project or whole.project or None)


# --- memories --------------------------------------------------------------------------------------------------------
def memory_search(
    query: Annotated[str, Field(description="Words or a question.", max_length=8_000)],
    scope: Scope | None = None,
    agent: Name = None,
    user: Name = None,
    project: Name = None,
    tags: Tags = None,
    kind: Kind | None = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    session: Name = None,
    as_of: Annotated[
        AwareDatetime | None, Field(None, description="Look back: memories in their version of that moment.")
    ] = None,
) -> FoundMemories:
    """Find what is remembered, by words and meaning, best first. Scopes that are not named match any."""
    writer = _writer("memories:read")
    request = SearchRequest(
        query=query,
        scope=_names(scope, agent, user, project),
        tags=tags or (),
        kinds=[kind] if kind else (),
        limit=limit,
        weights=queries.get_default_weights(writer.workspace),
        as_of=as_of.astimezone(UTC) if as_of else None,
    )
    recall = services.recall_memories(writer=writer, request=request, session=session or None)
    return FoundMemories(
        memories=[MemoryShape.of(hit.shown, hit.score) for hit in recall.result.hits],
        receipt=recall.receipt.public_id if recall.receipt else None,
        notes=list(recall.result.notes),
    )


def memory_save(
    content: Text,
    scope: Scope | None = None,
    agent: Name = None,
    user: Name = None,
    project: Name = None,
    session: Name = None,
    subject: Annotated[str, Field(max_length=200)] = "",
    kind: Kind = "semantic",
    importance: Importance = None,
    tags: Tags = None,
    path: Annotated[str | None, Field(None, max_length=1024, description="To address it like a file.")] = None,
) -> SavedMemory:
    """Remember one thing for later sessions. Without a scope it belongs to the key's own, or to the default agent."""
    writer = _writer("memories:write")
    draft = services.MemoryDraft(
        content=content,
        scope=scope_of_files(writer.binding, _names(scope, agent, user, project)),
        session=session or None,
        subject=subject,
        kind=kind,
        importance=0.5 if importance is None else importance,
        tags=tags or (),
        path=path or None,
    )
    saved = remember_with_neighbours(writer=writer, drafts=[draft])[0]
    return SavedMemory(
        id=saved.id,
        created=saved.created,
        deduplicated=saved.deduplicated,
        state=saved.state,
        trust=saved.trust,
        flags=list(saved.flags),
    )


def memory_update(
    id: MemoryId,
    content: Annotated[str | None, Field(None, max_length=102_400)] = None,
    subject: Annotated[str | None, Field(None, max_length=200)] = None,
    kind: Kind | None = None,
    importance: Importance = None,
    tags: Annotated[list[str] | None, Field(None, max_length=100, description="All tags; the others go.")] = None,
    add_tags: Tags = None,
    remove_tags: Tags = None,
    pinned: bool | None = None,
    expected_version: Version = None,
) -> ChangedMemory:
    """Change a memory; what is left out stays. Earlier versions are kept and can be restored by people."""
    given = {
        "content": content,
        "subject": subject,
        "kind": kind,
        "importance": importance,
        "tags": tags,
        "pinned": pinned,
    }
    changes = services.MemoryChanges(
        add_tags=add_tags or (),
        remove_tags=remove_tags or (),
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )
    memory = services.edit_memory(
        writer=_writer("memories:write"), memory_id=id, changes=changes, expected_version=expected_version
    )
    return ChangedMemory(id=memory.public_id, version=memory.version, state=memory.state)


def memory_forget(id: MemoryId, expected_version: Version = None) -> ChangedMemory:
    """Forget a memory: no search finds it any more. People can bring it back for 30 days."""
    memory = services.forget_memory(writer=_writer("memories:write"), memory_id=id, expected_version=expected_version)
    return ChangedMemory(id=memory.public_id, version=memory.version, state=memory.state)


def memory_list(
    scope: Scope | None = None,
    agent: Name = None,
    user: Name = None,
    project: Name = None,
    tag: Name = None,
    kind: Kind | None = None,
    state: Literal["active", "fading", "archived"] | None = None,
    order: Literal["recency", "created", "importance", "strength", "accessed"] = "recency",
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
    cursor: Annotated[str | None, Field(None, max_length=2000, description="next_cursor of the page before.")] = None,
) -> ListedMemories:
    """List memories by filter and order, page by page. Listing does not count as using them."""
    principal = _allowed("memories:read")
    wanted = queries.MemoryFilter(
        scope=_names(scope, agent, user, project),
        tags=[tag] if tag else (),
        kinds=[kind] if kind else (),
        states=[state] if state else (),
    )
    rows = queries.find_memories(principal.workspace, wanted, binding=principal.binding)
    keys: Order = queries.ORDERS[order]
    found, next_cursor = cut(rows, order=keys, cursor=cursor, limit=limit, load=queries.load_memories)
    return ListedMemories(memories=[MemoryShape.of(memory) for memory in found], next_cursor=next_cursor)


# --- sessions --------------------------------------------------------------------------------------------------------
def session_log(
    session: SessionId,
    content: Annotated[Any, Field(description="A text, or blocks as the provider's API has them.")] = None,
    kind: EventKind = "message",
    role: Annotated[str | None, Field(None, max_length=40)] = None,
    id: Annotated[str | None, Field(None, max_length=200, description="Yours; the same id is logged once.")] = None,
    parent_id: Annotated[str | None, Field(None, max_length=200, description="Default: the session's head.")] = None,
    tokens: Annotated[int | None, Field(None, ge=0)] = None,
    events: Annotated[
        list[LogEntry] | None, Field(None, min_length=1, max_length=200, description="Several at once, in order.")
    ] = None,
    agent: Name = None,
) -> LoggedEvents:
    """Append an event, or several, to a session: so its context can be rebuilt, and what is remembered has a source."""
    principal = _allowed("cache:write")
    if (events is None) == (content is None):
        raise errors.Invalid("Give either content or events.")
    one = LogEntry(content=content, kind=kind, role=role, id=id, parent_id=parent_id, tokens=tokens)
    given = [GivenEvent(**entry.model_dump()) for entry in events or [one]]
    if agent:
        describe_session(principal=principal, sid=session, agent=agent)
    done = append_events(session=open_session(principal=principal, sid=session), events=given)
    items = [LoggedEvent(id=place.id, parent_id=place.parent_id, depth=place.depth) for place in done.items]
    return LoggedEvents(items=items, head=done.head)


# --- the tool cache --------------------------------------------------------------------------------------------------
def tool_cache_get(
    session: SessionId,
    tool: Annotated[str, Field(min_length=1, max_length=200)],
    params: dict[str, Any],
    tool_version: Annotated[str, Field(max_length=200)] = "",
    root: Annotated[str, Field(max_length=1024)] = "",
    env: dict[str, Any] | None = None,
    fingerprints: Facts = None,
    max_age_seconds: Annotated[float | None, Field(None, ge=0)] = None,
) -> CachedResult:
    """Look up what a tool answered to the same parameters. A hit comes with its proof, a miss with its reason."""
    principal = _allowed("cache:read")
    if principal.is_bound:
        open_session(principal=principal, sid=session)
    call = ToolCall(sid=session, tool=tool, params=params, tool_version=tool_version, root=root, env=env or {})
    options = LookupOptions(shown=parse_given(fingerprints), max_age_seconds=max_age_seconds)
    answer = look_up(
        workspace=principal.workspace, call=call, options=options, may_write=principal.allows("cache:write")
    )
    hit = answer.state == "hit"
    return CachedResult(
        state=answer.state,  # type: ignore[arg-type]
        key=answer.key,
        value=json.loads(answer.value) if hit else None,
        reason=answer.reason or None,
        because=answer.because or None,
        changed_by=answer.changed_by or None,
        age_seconds=answer.age_seconds if hit else None,
        hit_count=answer.hit_count if hit else None,
        retry_after_seconds=answer.retry_after_seconds or None,
        depends_on=[dict(fact) for fact in answer.depends_on] or None,
        proof=_plain(dict(answer.proof)) if hit and answer.proof else None,
    )


def tool_cache_put(
    session: SessionId,
    tool: Annotated[str, Field(min_length=1, max_length=200)],
    params: dict[str, Any],
    value: Annotated[Any, Field(description="What the tool answered; null is a value too.")],
    tool_version: Annotated[str, Field(max_length=200)] = "",
    root: Annotated[str, Field(max_length=1024)] = "",
    env: dict[str, Any] | None = None,
    ttl_seconds: Annotated[float | None, Field(None, ge=0)] = None,
    depends_on: Facts = None,
    cost_ms: Annotated[float | None, Field(None, ge=0)] = None,
    error: bool = False,
) -> StoredResult:
    """Store what a tool answered, or learn why not. A tool whose policy names what it changes invalidates that."""
    principal = _allowed("cache:write")
    call = ToolCall(sid=session, tool=tool, params=params, tool_version=tool_version, root=root, env=env or {})
    given = ToolValue(
        value=value, ttl_seconds=ttl_seconds, depends_on=parse_given(depends_on), cost_ms=cost_ms, is_error=error
    )
    done = store_tool_result(session=open_session(principal=principal, sid=session), call=call, given=given)
    invalidated = announce_write(
        workspace=principal.workspace,
        tool=tool,
        changes=done.changes,
        actor=principal.actor,
        door="mcp",
        failed=error,
        anything=done.may_change_anything,
    )
    return StoredResult(
        key=done.key,
        stored=done.stored,
        reason=done.reason or None,
        size_bytes=done.size_bytes if done.stored else None,
        expires_at=done.expires_at,
        invalidated=invalidated,
    )


def _plain(value: Any) -> Any:
    """Times as text, so that a proof is plain JSON."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with what a client is told of it."""

    run: Callable[..., Any]
    title: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


TOOLS = (
    Tool(memory_search, "Search memories", read_only=True),
    Tool(memory_save, "Save a memory", idempotent=True),
    Tool(memory_update, "Change a memory", destructive=True, idempotent=True),
    Tool(memory_forget, "Forget a memory", destructive=True, idempotent=True),
    Tool(memory_list, "List memories", read_only=True),
    Tool(session_log, "Log a session's event"),
    Tool(tool_cache_get, "Look up a tool result", read_only=True),
    Tool(tool_cache_put, "Store a tool result", idempotent=True),
)
