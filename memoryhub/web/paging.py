"""Pages by cursor for the lists of the web: the rows of one page, and the addresses of the first and the next one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict

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


def page_of(
    request: HttpRequest,
    rows: QuerySet[Any],
    *,
    order: Order,
    limit: int = PAGE_ROWS,
    path: str = "",
    load: keyset.Load | None = None,
) -> Page:
    """Return the page that the request's `cursor` names, ordered by unique keys (end the order with the id).

    `path` is where the list stands, if not at the request's own address. With `load` only keys are sorted, and the page's
    rows read by it.
    """
    cursor = request.GET.get("cursor", "")
    found, next_cursor = keyset.cut(rows, order=order, cursor=cursor, limit=limit, load=load)
    at = path or request.path
    first = _address(at, request.GET, {"cursor": None}) if cursor else ""
    return Page(
        found, next_cursor or "", first, _address(at, request.GET, {"cursor": next_cursor}) if next_cursor else ""
    )


def url_with(request: HttpRequest, **changes: str | None) -> str:
    """Return this page's address with some parameters set, or taken away by None."""
    return _address(request.path, request.GET, changes)


def _address(path: str, parameters: QueryDict, changes: Mapping[str, str | None]) -> str:
    query = parameters.copy()
    for name, value in changes.items():
        if value in (None, ""):
            query.pop(name, None)
        else:
            query[name] = value
    return f"{path}?{query.urlencode()}" if query else path
