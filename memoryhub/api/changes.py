"""Change sets: what was changed by whom and why, and taking it back."""

from typing import Annotated, Any

from ninja import Query, Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.changes import ChangeSetOut, ChangeSetPage, RepricedByRevertOut, RevertIn, RevertOut
from memoryhub.api.schemas.memories import ShortText
from memoryhub.api.schemas.memory_care import SkippedOut
from memoryhub.flows.reverting import take_back
from memoryhub.long_term_memory import queries

router = Router(tags=["Changes"])


@router.get(
    "/changes",
    auth=requires("memories:read"),
    response=ChangeSetPage,
    operation_id="listChangeSets",
    summary="Change sets, newest first",
)
def list_changes(
    request: ApiRequest, limit: Limit, cursor: Cursor = None, memory: Annotated[ShortText | None, Query(None)] = None
) -> Any:
    """Every write belongs to one; `memory` names a memory whose changes are wanted."""
    principal = request.principal
    rows = queries.list_change_sets(principal.workspace, memory_id=memory, binding=principal.binding)
    return page(rows, order=[("created_at", "desc"), ("id", "desc")], cursor=cursor, limit=limit, shape=ChangeSetOut.of)


@router.post(
    "/changes/{change_set_id}/revert",
    auth=requires("memories:write", other="usage:write"),
    response=RevertOut,
    operation_id="revertChangeSet",
    summary="Take a change set back",
)
def revert_change_set(request: ApiRequest, change_set_id: str, body: RevertIn | None = None) -> Any:
    """A change set of its own. What changed since is listed and left alone, unless `force` is set.

    Change sets of prices need `usage:write` instead; their records are priced anew, and `repriced` says what that does.
    """
    asked = body or RevertIn()
    result = take_back(
        principal=request.principal,
        change_set_id=change_set_id,
        door="rest",
        reason=asked.reason,
        force=asked.force,
        dry_run=asked.dry_run,
    )
    return RevertOut(
        reverted=result.reverted,
        skipped=[SkippedOut(**row) for row in result.skipped],
        change_set=result.change_set.public_id if result.change_set else None,
        dry_run=asked.dry_run,
        repriced=RepricedByRevertOut.of(result.repricing) if result.repricing else None,
    )
