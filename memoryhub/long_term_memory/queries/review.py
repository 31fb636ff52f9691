"""The review inbox as lists and counts."""

from django.db.models import Q, QuerySet

from memoryhub.common.keyset import count_capped
from memoryhub.long_term_memory.models import ReviewItem, ReviewKind, ReviewState
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Binding


def list_review_items(
    workspace: Workspace, *, state: str = ReviewState.OPEN, kind: str | None = None, binding: Binding | None = None
) -> QuerySet[ReviewItem]:
    """Items of one state, with the memories they are about."""
    rows = ReviewItem.objects.filter(workspace=workspace)
    if state:
        rows = rows.filter(state=state)
    if kind:
        rows = rows.filter(kind=kind)
    for name in ("agent", "user", "project"):
        bound = getattr(binding, name, None)
        if bound:
            rows = rows.filter(Q(**{f"memory__scope__{name}": bound}) | Q(**{f"candidate__scope__{name}": bound}))
    return rows.select_related("memory__scope", "other__scope").prefetch_related(
        "memory__memory_tags__tag", "other__memory_tags__tag"
    )


def get_review_item(workspace: Workspace, public_id: str) -> ReviewItem:
    """One item of this workspace, open or decided; raises ReviewItem.DoesNotExist."""
    return list_review_items(workspace, state="").get(public_id=public_id)


def count_open_reviews(workspace: Workspace) -> int:
    """For the sidebar, counted up to the cap."""
    return count_capped(ReviewItem.objects.filter(workspace=workspace, state=ReviewState.OPEN))


def count_open_by_kind(workspace: Workspace) -> dict[str, int]:
    """How many questions of each kind wait, each counted up to the cap: for the inbox's tabs."""
    rows = ReviewItem.objects.filter(workspace=workspace, state=ReviewState.OPEN)
    return {kind: count_capped(rows.filter(kind=kind)) for kind in ReviewKind.values}
