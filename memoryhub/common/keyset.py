"""Lists by cursor (keyset paging): a page costs the page, wherever it stands, and stays right while rows come and go.

The cursor holds the sort key of the last row shown; the next page starts behind it, never at an OFFSET.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet

from memoryhub.common import errors

Order = Sequence[tuple[str, str]]  # (field, "asc" or "desc"); ends in a unique field; no field may be null
Load = Callable[[Sequence[Any]], Mapping[Any, Any]]  # primary keys -> the rows by them


COUNT_CAP = 10_000  # larger counts are shown as "10,000+"


class BadCursor(errors.Invalid):
    slug = "bad-cursor"
    title = "This cursor does not belong to this list"


def cut(
    queryset: QuerySet[Any], *, order: Order, cursor: str | None, limit: int, load: Load | None = None
) -> tuple[list[Any], str | None]:
    """Return the rows after the cursor in this order, and the cursor of the page behind them (None at the end).

    With `load` only keys are read and sorted, and then the page's rows by it: where no index gives the order, whole rows
    would be carried through the sort. A row that is gone meanwhile is left out.
    """
    if cursor:
        queryset = queryset.filter(_after(order, decode_cursor(cursor, order)))
    names = [f"-{name}" if direction == "desc" else name for name, direction in order]
    if load:
        queryset = queryset.values_list(*dict.fromkeys([name for name, _ in order] + ["pk"]), named=True)
    rows = list(queryset.order_by(*names)[: limit + 1])
    next_cursor = encode_cursor(rows[limit - 1], order) if len(rows) > limit else None
    rows = rows[:limit]
    if load and rows:
        found = load([row.pk for row in rows])
        rows = [found[row.pk] for row in rows if row.pk in found]
    return rows, next_cursor


def encode_cursor(row: Any, order: Order) -> str:
    """Return the opaque cursor that stands behind this row."""
    values = [_plain(getattr(row, name)) for name, _ in order]
    text = json.dumps([_signature(order), values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, order: Order) -> list[Any]:
    """Return the sort key that the cursor stands behind; raises BadCursor for any other text."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        signature, values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if signature != _signature(order) or len(values) != len(order):
            raise ValueError
        return [_rich(value) for value in values]
    except (ValueError, TypeError, KeyError, ArithmeticError, binascii.Error, RecursionError) as error:
        raise BadCursor("Use the next_cursor of the same list and order.") from error


def _signature(order: Order) -> str:
    return ",".join(f"{name}:{direction}" for name, direction in order)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return {"at": value.isoformat()}
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        return datetime.fromisoformat(value["at"]) if "at" in value else Decimal(value["decimal"])
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError
    return value


def _after(order: Order, values: list[Any]) -> Q:
    """Return the condition "behind this row", led by a plain bound on the first field that an index can use."""
    condition = Q()
    for index, part in enumerate(order):
        equal = Q(**{name: value for (name, _), value in zip(order[:index], values, strict=False)})
        condition |= equal & _beyond(part, values[index], strict=True)
    return _beyond(order[0], values[0], strict=False) & condition


def _beyond(part: tuple[str, str], value: Any, *, strict: bool) -> Q:
    name, direction = part
    operator = ("lt" if direction == "desc" else "gt") + ("" if strict else "e")
    return Q(**{f"{name}__{operator}": value})


def count_capped(rows: QuerySet[Any], cap: int = COUNT_CAP) -> int:
    """Return how many rows there are, counted up to just above the cap, so that no page grows with its table."""
    return rows.order_by()[: cap + 1].count()
