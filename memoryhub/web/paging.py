"""Pages by cursor for lists: always by the last row's sort key, never by OFFSET, so page 1,000 is as fast as page 1."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memoryhub.common import errors

PAGE_ROWS = 50
Direction = Literal["asc", "desc"]
Order = Sequence[tuple[str, Direction]]


class BadCursor(errors.Malformed):
    slug = "bad-cursor"
    title = "This page is not there any more"


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of one page and how to go on."""

    items: list[Any]
    next_cursor: str
    first_url: str
    next_url: str


def page_of(request: HttpRequest, rows: QuerySet[Any], *, order: Order, limit: int = PAGE_ROWS) -> Page:
    """Return the page that the request's `cursor` names, ordered by unique keys (end the order with the id)."""
    cursor = request.GET.get("cursor", "")
    if cursor:
        rows = rows.filter(_after(order, _decode(cursor, len(order))))
    names = [f"-{name}" if direction == "desc" else name for name, direction in order]
    found = list(rows.order_by(*names)[: limit + 1])
    more = len(found) > limit
    next_cursor = _encode(found[limit - 1], order) if more else ""
    first = url_with(request, cursor=None) if cursor else ""
    return Page(found[:limit], next_cursor, first, url_with(request, cursor=next_cursor) if more else "")


def url_with(request: HttpRequest, **changes: str | None) -> str:
    """Return this page's address with some parameters set, or taken away by None."""
    query = request.GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = value  # type: ignore[assignment]
    return f"{request.path}?{query.urlencode()}" if query else request.path


def _after(order: Order, values: list[Any]) -> Q:
    condition = Q()
    for index, (name, direction) in enumerate(order):
        same = {order[i][0]: values[i] for i in range(index)}
        condition |= Q(**same, **{f"{name}__{'lt' if direction == 'desc' else 'gt'}": values[index]})
    return condition


def _encode(row: Model, order: Order) -> str:
    values = []
    for name, _direction in order:
        value = getattr(row, name)
        tag = "t" if isinstance(value, datetime) else "d" if isinstance(value, Decimal) else "v"
        values.append([tag, value.isoformat() if tag == "t" else str(value) if tag == "d" else value])
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def _decode(cursor: str, length: int) -> list[Any]:
    try:
        pairs = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        values = [_DECODERS[tag](value) for tag, value in pairs]
    except (ValueError, TypeError, KeyError, ArithmeticError, binascii.Error, RecursionError) as error:
        raise BadCursor(_("Go back to the first page.")) from error
    if len(values) != length:
        raise BadCursor(_("Go back to the first page."))
    return values


def _scalar(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError("not a sort key")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("beyond the database's integers")
    return value


_DECODERS = {"t": datetime.fromisoformat, "d": Decimal, "v": _scalar}
