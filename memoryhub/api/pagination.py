"""Lists by cursor: a page costs the page, wherever it stands, and stays right while rows come and go."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from django.db.models import Model, Q, QuerySet
from ninja import Query

from memoryhub.common import errors

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
Limit = Annotated[int, Query(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="How many items a page has.")]
Cursor = Annotated[str | None, Query(None, max_length=2000, description="`next_cursor` of the page before.")]
Order = Sequence[tuple[str, str]]  # (field, "asc" | "desc"), ending in a unique field; no field may be null


class BadCursor(errors.Invalid):
    slug = "bad-cursor"
    title = "This cursor does not belong to this list"


def page(
    queryset: QuerySet[Any], *, order: Order, cursor: str | None, limit: int, shape: Callable[[Any], Any]
) -> dict[str, Any]:
    """Return {"items", "next_cursor"}: the rows after the cursor in this order, shaped."""
    rows, next_cursor = cut(queryset, order=order, cursor=cursor, limit=limit)
    return {"items": [shape(row) for row in rows], "next_cursor": next_cursor}


def cut(queryset: QuerySet[Any], *, order: Order, cursor: str | None, limit: int) -> tuple[list[Any], str | None]:
    """Return the rows after the cursor in this order, and the cursor of the page behind them."""
    if cursor:
        queryset = queryset.filter(_after(order, decode_cursor(cursor, order)))
    names = [f"-{name}" if direction == "desc" else name for name, direction in order]
    rows = list(queryset.order_by(*names)[: limit + 1])
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], encode_cursor(rows[limit - 1], order)


def encode_cursor(row: Model, order: Order) -> str:
    """Return the opaque cursor that stands behind this row."""
    values = [_plain(getattr(row, name)) for name, _ in order]
    text = json.dumps([_signature(order), values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, order: Order) -> list[Any]:
    """Return the values of the row that the cursor stands behind; raises BadCursor for any other text."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        signature, values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if signature != _signature(order) or len(values) != len(order):
            raise ValueError
        return [_rich(value) for value in values]
    except (ValueError, TypeError, KeyError, binascii.Error, RecursionError) as error:
        raise BadCursor("Use the next_cursor of the same list and order.") from error


def _signature(order: Order) -> str:
    return ",".join(f"{name}:{direction}" for name, direction in order)


def _plain(value: Any) -> Any:
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        return datetime.fromisoformat(value["at"])
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError
    return value


def _after(order: Order, values: list[Any]) -> Q:
    """Return the condition "behind this row", led by a plain bound on the first field that an index can use."""
    condition = Q()
    for index in range(len(order)):
        equal = Q(**{name: value for (name, _), value in zip(order[:index], values, strict=False)})
        condition |= equal & _beyond(order[index], values[index], strict=True)
    return _beyond(order[0], values[0], strict=False) & condition


def _beyond(part: tuple[str, str], value: Any, *, strict: bool) -> Q:
    name, direction = part
    operator = ("lt" if direction == "desc" else "gt") + ("" if strict else "e")
    return Q(**{f"{name}__{operator}": value})
