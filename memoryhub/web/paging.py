"""Pages by cursor for the lists of the web: the rows of one page, and the addresses of the first and the next one."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest

from memoryhub.common import keyset

PAGE_ROWS = 50
Order = keyset.Order
BadCursor = keyset.BadCursor


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
    found, next_cursor = keyset.cut(rows, order=order, cursor=cursor, limit=limit)
    first = url_with(request, cursor=None) if cursor else ""
    return Page(found, next_cursor or "", first, url_with(request, cursor=next_cursor) if next_cursor else "")


def url_with(request: HttpRequest, **changes: str | None) -> str:
    """Return this page's address with some parameters set, or taken away by None."""
    query = request.GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = value
    return f"{request.path}?{query.urlencode()}" if query else request.path
