"""Tags over all memories of a workspace."""

from typing import Any

from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.memories import writer_of
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.memories import several
from memoryhub.api.schemas.memory_care import BulkOut, SkippedOut
from memoryhub.api.schemas.tags import TagMerge, TagOut, TagPage, TagRename
from memoryhub.long_term_memory import queries, services

router = Router(tags=["Tags"])


@router.get(
    "/tags", auth=requires("memories:read"), response=TagPage, operation_id="listTags", summary="Tags in use, by name"
)
def list_tags(request: ApiRequest, limit: Limit, cursor: Cursor = None) -> Any:
    """Each with the number of memories outside the trash that have it."""
    principal = request.principal
    rows = queries.list_tag_rows(principal.workspace, binding=principal.binding)
    order = [("name", "asc"), ("id", "asc")]
    return page(rows, order=order, cursor=cursor, limit=limit, shape=lambda tag: TagOut(name=tag.name, count=tag.count))


@router.post(
    "/tags/rename",
    auth=requires("memories:write"),
    response=BulkOut,
    operation_id="renameTag",
    summary="Give a tag another name everywhere",
)
def rename_tag(request: ApiRequest, body: TagRename) -> Any:
    """Ids and history stay; one change set. A tag of the new name takes the memories in."""
    return _out(services.rename_tag(writer=writer_of(request, body.reason), old=body.from_, new=body.to))


@router.post(
    "/tags/merge",
    auth=requires("memories:write"),
    response=BulkOut,
    operation_id="mergeTags",
    summary="Put one tag in the place of several",
)
def merge_tags(request: ApiRequest, body: TagMerge) -> Any:
    """One change set, which a revert takes apart again."""
    return _out(services.merge_tags(writer=writer_of(request, body.reason), names=several(body.from_), into=body.to))


def _out(result: services.BulkResult) -> BulkOut:
    return BulkOut(
        matched=result.matched,
        changed=result.changed,
        skipped=[SkippedOut(**row) for row in result.skipped],
        change_set=result.change_set.public_id if result.change_set else None,
    )
