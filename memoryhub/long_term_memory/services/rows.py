"""Fast writes of many rows: one prepared statement for all of them, on both databases, inside the caller's transaction.

Django's `bulk_create` and `bulk_update` build one large statement per few rows on SQLite, whose limit is 999 values;
a prepared statement run many times is several times faster there, and psycopg sends it as a pipeline.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django.db import connection, models

from memoryhub.long_term_memory.models import Memory


@lru_cache(maxsize=32)
def _columns(model: type[models.Model]) -> "tuple[models.Field[Any, Any], ...]":
    return tuple(model._meta.concrete_fields)


def reserve_ids(model: type[models.Model], count: int) -> list[int]:
    """Ids for new rows, which nobody else will use. On SQLite the write transaction makes them ours."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            row = cursor.fetchone()
            last = row[0] if row else 0
            return list(range(last + 1, last + 1 + count))
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [table, count])
        return [row[0] for row in cursor.fetchall()]


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Insert rows of one model; rows of a model with an automatic id get theirs here."""
    if not rows:
        return
    model = type(rows[0])
    fields = _columns(model)
    key = model._meta.pk
    if isinstance(key, models.AutoField | models.BigAutoField):
        missing = [row for row in rows if row.pk is None]
        for row, pk in zip(missing, reserve_ids(model, len(missing)), strict=True):
            row.pk = pk
    quote = connection.ops.quote_name
    names = ", ".join(quote(field.column) for field in fields)
    holes = ", ".join(["%s"] * len(fields))
    prepare = [(field.attname, field.get_db_prep_save) for field in fields]
    values = [tuple(to_db(getattr(row, name), connection) for name, to_db in prepare) for row in rows]
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {quote(model._meta.db_table)} ({names}) VALUES ({holes})", values)  # noqa: S608
    for row in rows:
        row._state.adding = False
        row._state.db = "default"


def update_memories(memories: Sequence[Memory], names: Iterable[str]) -> bool:
    """Update the named fields of rows whose version is still one less than theirs; False where one of them moved on."""
    fields = [Memory._meta.get_field(name) for name in names]
    quote = connection.ops.quote_name
    sets = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    values = [
        (
            *(field.get_db_prep_save(getattr(memory, field.attname), connection) for field in fields),
            memory.pk,
            memory.version - 1,
        )
        for memory in memories
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            f"UPDATE {quote(Memory._meta.db_table)} SET {sets} WHERE id = %s AND version = %s",  # noqa: S608
            values,
        )
        return cursor.rowcount == len(values)


def execute_many(sql: str, values: Sequence[Sequence[Any]]) -> None:
    """Run one statement for many rows of values."""
    if values:
        with connection.cursor() as cursor:
            cursor.executemany(sql, values)
