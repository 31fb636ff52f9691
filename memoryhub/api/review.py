"""The review inbox: near duplicates, contradictions, quarantined writes, extracted candidates, fading memories."""

from typing import Any, Literal

from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.memories import writer_of
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.review import DecisionIn, ReviewOut, ReviewPage
from memoryhub.long_term_memory import queries, services
from memoryhub.long_term_memory.models import ReviewItem

router = Router(tags=["Review"])

ReviewKindName = Literal["duplicate", "contradiction", "quarantined", "extracted", "fading"]
ReviewStateName = Literal["open", "accepted", "rejected"]


def _out(item: ReviewItem) -> ReviewOut:
    return ReviewOut.of(item, services.DECISIONS[item.kind])


@router.get(
    "/review",
    auth=requires("memories:read"),
    response=ReviewPage,
    operation_id="listReviewItems",
    summary="What waits for a decision, newest first",
)
def list_review_items(
    request: ApiRequest,
    limit: Limit,
    cursor: Cursor = None,
    state: ReviewStateName = "open",
    kind: ReviewKindName | None = None,
) -> Any:
    """Each item says which decisions it takes."""
    principal = request.principal
    rows = queries.list_review_items(principal.workspace, state=state, kind=kind, binding=principal.binding)
    return page(rows, order=[("created_at", "desc"), ("id", "desc")], cursor=cursor, limit=limit, shape=_out)


@router.post(
    "/review/{review_id}",
    auth=requires("memories:write"),
    response=ReviewOut,
    operation_id="decideReview",
    summary="Decide about one item",
)
def decide_review(request: ApiRequest, review_id: str, body: DecisionIn) -> Any:
    """The decision is carried out in one change set."""
    services.decide_review(
        writer=writer_of(request, body.reason), review_id=review_id, decision=body.decision, options=body.options()
    )
    return _out(queries.get_review_item(request.principal.workspace, review_id))
