"""Memories: keep, list, read, edit, forget, restore, supersede, rate, erase."""

import re
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Header, Query, Router, Status
from pydantic import Field

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.base import GivenTime
from memoryhub.api.schemas.jobs import JobAccepted, accepted
from memoryhub.api.schemas.memories import (
    ErasedOut,
    EraseIn,
    FeedbackIn,
    FeedbackOut,
    ForgottenOut,
    Kind,
    MemoryIn,
    MemoryOut,
    MemoryPage,
    MemoryPatch,
    Names,
    OrderName,
    PriceOut,
    RememberedList,
    RememberedOut,
    RestoreIn,
    ShortText,
    State,
    SupersedeIn,
    TagName,
    TrustName,
    VersionOut,
    VersionPage,
)
from memoryhub.common import clock, errors
from memoryhub.flows import erase
from memoryhub.flows.memory_price import price_memory
from memoryhub.flows.remember import remember_with_neighbours
from memoryhub.jobs.memories import backups_that_hold
from memoryhub.long_term_memory import queries, services
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory

router = Router(tags=["Memories"])

Drafts = MemoryIn | Annotated[list[MemoryIn], Field(min_length=1, max_length=services.MAX_DRAFTS)]
IfMatch = Annotated[str | None, Header(None, alias="If-Match", max_length=200, description='The ETag you saw, `"v3"`.')]
_ETAG = re.compile(r'^\s*(?:W/)?"?v?(\d{1,9})"?\s*$')


class MissingIfMatch(errors.PreconditionRequired):
    slug = "if-match-required"
    title = "If-Match is missing"


def writer_of(request: ApiRequest, reason: str = "") -> services.Writer:
    """The writer behind a request: a key through REST, or a person's page through the same door."""
    return services.Writer.of(request.principal, door="rest", reason=reason)


def expected_version(if_match: str | None) -> int | None:
    """The version that If-Match names; `*` is any, an ETag that is not ours matches nothing."""
    if if_match is None:
        raise MissingIfMatch("Send the ETag of the version you saw as If-Match.")
    if if_match.strip() == "*":
        return None
    found = _ETAG.match(if_match)
    return int(found[1]) if found else 0


def with_etag(response: HttpResponse, memory: Memory) -> MemoryOut:
    """The memory's shape, its version set as the answer's ETag."""
    response["ETag"] = f'"v{memory.version}"'
    return MemoryOut.of(memory)


def current_shape(request: ApiRequest, memory_id: str) -> dict[str, Any]:
    """The memory as it is now, for a 412."""
    memory = queries.get_memory(request.principal.workspace, memory_id, binding=request.principal.binding)
    return {"current": MemoryOut.of(memory).model_dump(mode="json"), "current_version": memory.version}


@router.post(
    "/memories",
    auth=requires("memories:write"),
    response={201: RememberedList},
    operation_id="remember",
    summary="Keep one memory or a list of them",
)
def remember(request: ApiRequest, body: Drafts) -> Any:
    """All or nothing: one change set. The same text in the same scope comes back as `deduplicated`."""
    bodies = body if isinstance(body, list) else [body]
    results = remember_with_neighbours(writer=writer_of(request), drafts=[each.draft() for each in bodies])
    return Status(201, RememberedList(items=[RememberedOut.of(result) for result in results]))


@router.get(
    "/memories",
    auth=requires("memories:read"),
    response=MemoryPage,
    operation_id="listMemories",
    summary="List memories by filter and order",
)
def list_memories(
    request: ApiRequest,
    limit: Limit,
    cursor: Cursor = None,
    agent: Annotated[Names | None, Query(None)] = None,
    user: Annotated[Names | None, Query(None)] = None,
    project: Annotated[Names | None, Query(None)] = None,
    tag: Annotated[list[TagName], Query([])] = [],  # noqa: B006 - ninja copies it
    tags_any: Annotated[list[Names], Query([])] = [],  # noqa: B006
    tags_none: Annotated[list[Names], Query([])] = [],  # noqa: B006
    kind: Annotated[list[Kind], Query([])] = [],  # noqa: B006
    state: Annotated[list[State], Query([])] = [],  # noqa: B006
    trust: Annotated[list[TrustName], Query([])] = [],  # noqa: B006
    session: Annotated[ShortText | None, Query(None)] = None,
    pinned: bool | None = None,
    superseded: bool | None = None,
    order: OrderName = "recency",
    since: GivenTime | None = None,
    until: GivenTime | None = None,
) -> Any:
    """The trash is left out unless `state=forgotten` asks for it. `tag` may be repeated: all must be there."""
    wanted = queries.MemoryFilter(
        scope=ScopeNames(agent or None, user or None, project or None),
        tags=tag,
        tags_any=_listed(tags_any),
        tags_none=_listed(tags_none),
        kinds=kind,
        states=state,
        trusts=trust,
        session=session,
        pinned=pinned,
        superseded=superseded,
        since=since,
        until=until,
    )
    rows = queries.find_memories(request.principal.workspace, wanted, binding=request.principal.binding)
    keys = queries.ORDERS[order]
    return page(rows, order=keys, cursor=cursor, limit=limit, shape=MemoryOut.of, load=queries.load_memories)


def _listed(values: list[str]) -> list[str]:
    """Repeated or separated by commas."""
    return [name for value in values for name in dict.fromkeys([value, *value.split(",")]) if name]


@router.post(
    "/memories/erase",
    auth=requires("admin"),
    response={202: JobAccepted},
    operation_id="eraseScope",
    summary="Erase everything of an agent, a user or a project",
)
def erase_scope(request: ApiRequest, body: EraseIn) -> Any:
    """Memories with their versions, receipts and index, sessions with their events and tool results, and every copy of a
    request or reply that may quote them. A job does it; its result counts what went and names the backups that are left."""
    job = services.request_erase(writer=writer_of(request), scope=body.scope.names())
    return Status(202, accepted(job))


@router.get(
    "/memories/{memory_id}",
    auth=requires("memories:read"),
    response=MemoryOut,
    operation_id="getMemory",
    summary="Read one memory",
)
def get_memory(request: ApiRequest, response: HttpResponse, memory_id: str) -> Any:
    """Answers with `ETag: "v<version>"`. Reading does not count as an access."""
    principal = request.principal
    return with_etag(response, queries.get_memory(principal.workspace, memory_id, binding=principal.binding))


@router.patch(
    "/memories/{memory_id}",
    auth=requires("memories:write"),
    response=MemoryOut,
    operation_id="editMemory",
    summary="Set some fields of a memory",
)
def edit_memory(
    request: ApiRequest, response: HttpResponse, memory_id: str, body: MemoryPatch, if_match: IfMatch = None
) -> Any:
    """Needs If-Match. 412 carries the memory as it is now; what changes nothing makes no version."""
    version = expected_version(if_match)
    try:
        services.edit_memory(
            writer=writer_of(request, body.reason),
            memory_id=memory_id,
            changes=body.changes(),
            expected_version=version,
        )
    except services.ChangedMeanwhile as error:
        error.extra.update(current_shape(request, memory_id))
        raise
    return get_memory(request, response, memory_id)


@router.delete(
    "/memories/{memory_id}",
    auth=requires("memories:write"),
    response=ForgottenOut,
    operation_id="forgetMemory",
    summary="Move a memory to the trash",
)
def forget_memory(request: ApiRequest, memory_id: str, if_match: IfMatch = None) -> Any:
    """Needs If-Match. No list, search or door finds it any more; it can be restored for 30 days."""
    version = expected_version(if_match)
    try:
        memory = services.forget_memory(writer=writer_of(request), memory_id=memory_id, expected_version=version)
    except services.ChangedMeanwhile as error:
        error.extra.update(current_shape(request, memory_id))
        raise
    change_set = services.last_change_set(memory)
    return ForgottenOut(
        id=memory.public_id,
        state=memory.state,
        version=memory.version,
        change_set=change_set.public_id if change_set else None,
    )


@router.get(
    "/memories/{memory_id}/versions",
    auth=requires("memories:read"),
    response=VersionPage,
    operation_id="listMemoryVersions",
    summary="A memory's history, newest first",
)
def list_versions(request: ApiRequest, memory_id: str, limit: Limit, cursor: Cursor = None) -> Any:
    """Who changed what, when and why; a forgotten memory's history stays readable."""
    principal = request.principal
    rows = queries.list_versions(principal.workspace, memory_id, binding=principal.binding)
    return page(rows, order=[("number", "desc"), ("id", "desc")], cursor=cursor, limit=limit, shape=VersionOut.of)


@router.get(
    "/memories/{memory_id}/price",
    auth=requires("memories:read"),
    response=PriceOut,
    operation_id="priceMemory",
    summary="What a memory costs in cache breaks",
)
def get_price(request: ApiRequest, memory_id: str) -> Any:
    """Where requests of the last 30 days carried it, and what the misses that began there cost."""
    principal = request.principal
    memory = queries.get_memory(principal.workspace, memory_id, binding=principal.binding)
    return PriceOut.of(price_memory(workspace=principal.workspace, memory=memory, now=clock.now()))


@router.post(
    "/memories/{memory_id}/restore",
    auth=requires("memories:write"),
    response=MemoryOut,
    operation_id="restoreMemory",
    summary="Bring a memory back, or an earlier version of it",
)
def restore_memory(request: ApiRequest, response: HttpResponse, memory_id: str, body: RestoreIn | None = None) -> Any:
    """Out of the trash or the archive, with `version` in that version's form. The forgetting curve starts anew."""
    asked = body or RestoreIn()
    services.restore_memory(writer=writer_of(request, asked.reason), memory_id=memory_id, version=asked.version)
    return get_memory(request, response, memory_id)


@router.post(
    "/memories/{memory_id}/supersede",
    auth=requires("memories:write"),
    response={201: RememberedList},
    operation_id="supersedeMemory",
    summary="Put a newer memory in the place of this one",
)
def supersede_memory(request: ApiRequest, memory_id: str, body: SupersedeIn) -> Any:
    """The older one stays readable and says what replaced it; recall returns the newer."""
    result = services.supersede_memory(writer=writer_of(request, body.reason), memory_id=memory_id, draft=body.draft())
    return Status(201, RememberedList(items=[RememberedOut.of(result)]))


@router.post(
    "/memories/{memory_id}/feedback",
    auth=requires("memories:write"),
    response=FeedbackOut,
    operation_id="rateMemory",
    summary="Say whether a recalled memory helped",
)
def rate_memory(request: ApiRequest, memory_id: str, body: FeedbackIn) -> Any:
    """Ratings re-rank; they never forget by themselves."""
    memory = services.rate_memory(writer=writer_of(request, body.reason), memory_id=memory_id, helpful=body.helpful)
    return FeedbackOut(id=memory.public_id, helpful_count=memory.helpful_count, harmful_count=memory.harmful_count)


@router.post(
    "/memories/{memory_id}/erase",
    auth=requires("memories:write"),
    response=ErasedOut,
    operation_id="eraseMemory",
    summary="Erase every trace of a memory",
)
def erase_memory(request: ApiRequest, memory_id: str) -> Any:
    """Rows, versions, receipts, index, log details, kept requests and the files behind them. This can't be undone."""
    erased = erase.erase_memory(writer=writer_of(request), memory_id=memory_id)
    return ErasedOut(
        memories=erased.memories, versions=erased.versions, receipts=erased.receipts, backups=backups_that_hold()
    )
