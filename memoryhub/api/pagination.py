"""The form of the API's lists: `?limit=&cursor=` in, {"items", "next_cursor"} out."""

from collections.abc import Callable
from typing import Annotated, Any

from django.db.models import QuerySet
from ninja import Query

from memoryhub.common.keyset import Load, Order, cut

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
Limit = Annotated[int, Query(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many items a page has.")]
Cursor = Annotated[str | None, Query(None, max_length=2000, description="`next_cursor` of the page before.")]


def page(
    queryset: QuerySet[Any],
    *,
    order: Order,
    cursor: str | None,
    limit: int,
    shape: Callable[[Any], Any],
    load: Load | None = None,
) -> dict[str, Any]:
    """Return the rows after the cursor in this order, shaped; with `load` only keys are sorted, and the rows read by it."""
    rows, next_cursor = cut(queryset, order=order, cursor=cursor, limit=limit, load=load)
    return {"items": [shape(row) for row in rows], "next_cursor": next_cursor}
