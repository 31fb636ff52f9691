"""Rows as the driver gives them, where Django's own way to them costs more than the read."""

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import QuerySet


class PlainQuery:
    """A fixed SELECT with %s places. On SQLite it goes straight to the driver, past the cursor that rewrites its text."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._for_sqlite = sql.replace("%s", "?")

    def fetch(self, arguments: Sequence[Any]) -> Sequence[Any] | None:
        """Return the first row, or None."""
        connection = connections["default"]  # resolved once: each look through the proxy costs as much as a small read
        if connection.vendor != "sqlite" or connection.queries_logged:
            with connection.cursor() as cursor:
                cursor.execute(self._sql, arguments)
                row: Sequence[Any] | None = cursor.fetchone()
            return row
        connection.ensure_connection()
        with connection.wrap_database_errors:
            found: Sequence[Any] | None = connection.connection.execute(self._for_sqlite, arguments).fetchone()
        return found


def fetch_plain(rows: QuerySet[Any, Any]) -> list[tuple[Any, ...]]:
    """The rows of a `values_list` past Django's converters: for texts and whole numbers, not for times.

    PostgreSQL gives sums of large numbers as Decimal.
    """
    try:
        return fetch_sql(*rows.query.sql_with_params())
    except EmptyResultSet:  # Django knows without asking
        return []


def fetch_sql(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a SELECT with %s places, as the driver gives them."""
    with connections["default"].cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()
