"""Finding memories: search, why not, render, and the receipts of recalls."""

from typing import Annotated, Any

from ninja import Query, Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.memories import writer_of
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.memories import ShortText
from memoryhub.api.schemas.memory_search import (
    HitOut,
    MemoryRef,
    RecallOut,
    RecallPage,
    RenderIn,
    RenderOut,
    SearchIn,
    SearchOut,
    WhyNotIn,
    WhyNotOut,
)
from memoryhub.common import clock, errors
from memoryhub.long_term_memory import queries, services

router = Router(tags=["Memories"])


def _records(request: ApiRequest, asked: bool | None) -> bool:
    """Agents' searches are recalls; a person who looks around is not."""
    return request.principal.kind == "key" if asked is None else asked


@router.post(
    "/memories/search",
    auth=requires("memories:read"),
    response=SearchOut,
    operation_id="searchMemories",
    summary="Find memories by words and meaning",
)
def search_memories(request: ApiRequest, body: SearchIn) -> Any:
    """Filters come before ranking and limit. A recall leaves a receipt and counts as an access, unless `record` is false."""
    defaults = queries.get_default_weights(request.principal.workspace)
    recall = services.recall_memories(
        writer=writer_of(request),
        request=body.request(defaults),
        session=body.session,
        explain=body.explain,
        record=_records(request, body.record),
    )
    return SearchOut(
        items=[HitOut.of_hit(hit) for hit in recall.result.hits],
        receipt=recall.receipt.public_id if recall.receipt else None,
        notes=recall.result.notes,
    )


@router.post(
    "/memories/why-not",
    auth=requires("memories:read"),
    response=WhyNotOut,
    operation_id="explainAbsence",
    summary="Why a search does not return a memory",
)
def explain_absence(request: ApiRequest, body: WhyNotIn) -> Any:
    """Names the step that removed it, or its rank with its scores."""
    principal = request.principal
    answer = queries.explain_absence(
        principal.workspace,
        body.request(queries.get_default_weights(principal.workspace)),
        body.memory_id,
        now=clock.now(),
        binding=principal.binding,
    )
    return WhyNotOut.of(answer)


@router.post(
    "/memories/render",
    auth=requires("memories:read"),
    response=RenderOut,
    operation_id="renderMemories",
    summary="Memories as one stable block of text",
)
def render_memories(request: ApiRequest, body: RenderIn) -> Any:
    """By `ids` or by a search. The same memories give the same bytes, so that the block does not break a prompt cache."""
    principal = request.principal
    if (body.ids is None) == (body.query is None):
        raise errors.Invalid("Give either ids or a query.")
    receipt = None
    if body.ids is not None:
        found = queries.find_renderable(principal.workspace, body.ids, now=clock.now(), binding=principal.binding)
    else:
        recall = services.recall_memories(
            writer=writer_of(request),
            request=body.search().request(queries.get_default_weights(principal.workspace)),
            session=body.session,
            record=_records(request, body.record),
        )
        found = [hit.shown for hit in recall.result.hits]
        receipt = recall.receipt.public_id if recall.receipt else None
    rendered = queries.render_memories(found)
    return RenderOut(
        text=rendered.text,
        memories=[MemoryRef(**row) for row in rendered.memories],
        tokens=rendered.tokens,
        receipt=receipt,
    )


@router.get(
    "/recalls",
    auth=requires("memories:read"),
    response=RecallPage,
    operation_id="listRecalls",
    summary="Receipts of recalls, newest first",
)
def list_recalls(
    request: ApiRequest, limit: Limit, cursor: Cursor = None, session: Annotated[ShortText | None, Query(None)] = None
) -> Any:
    """Who asked what, when, and which memories came back with which scores."""
    principal = request.principal
    rows = queries.list_recalls(principal.workspace, session=session, binding=principal.binding)
    return page(rows, order=[("created_at", "desc"), ("id", "desc")], cursor=cursor, limit=limit, shape=RecallOut.of)
