"""Inserting very many rows: on SQLite a hundred by each statement, which takes two thirds of the time of one by one.

psycopg sends the rows of one statement as a pipeline, so PostgreSQL gets them one by one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from django.db import connections

AT_ONCE = 100  # more gain little
MOST_VALUES = 10_000  # of one statement: no build of SQLite that Python 3.11 comes with takes fewer


def insert_many(table: str, columns: Iterable[str], rows: Sequence[Sequence[Any]], *, tail: str = "") -> None:
    """Insert rows of values as the driver takes them; `tail` stands behind the values (ON CONFLICT ...).

    Names are quoted here; they and `tail` must be our own, never somebody's input.
    """
    if not rows:
        return
    connection = connections["default"]  # resolved once: each look through the proxy takes a microsecond
    names = tuple(map(connection.ops.quote_name, columns))
    table = connection.ops.quote_name(table)
    watched = connection.queries_logged or connection.execute_wrappers
    if connection.vendor != "sqlite" or len(rows) < AT_ONCE or watched:
        with connection.cursor() as cursor:
            cursor.executemany(_statement(table, names, 1, "%s", tail), rows)
        return
    connection.ensure_connection()
    with connection.wrap_database_errors:
        _insert_together(connection.connection, table, names, rows, tail)


def _insert_together(
    database: sqlite3.Connection, table: str, names: tuple[str, ...], rows: Sequence[Sequence[Any]], tail: str
) -> None:
    together = max(1, min(AT_ONCE, _most_values(database) // len(names)))
    rest = len(rows) % together
    statement = _statement(table, names, together, "?", tail)
    for start in range(0, len(rows) - rest, together):
        database.execute(statement, tuple(chain.from_iterable(rows[start : start + together])))
    if rest:
        database.executemany(_statement(table, names, 1, "?", tail), rows[len(rows) - rest :])


def _most_values(database: sqlite3.Connection) -> int:
    return min(MOST_VALUES, database.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))


@lru_cache(maxsize=128)
def _statement(table: str, names: tuple[str, ...], count: int, hole: str, tail: str) -> str:
    row = f"({', '.join([hole] * len(names))})"
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join([row] * count)} {tail}"  # noqa: S608 - our own names, bound values
