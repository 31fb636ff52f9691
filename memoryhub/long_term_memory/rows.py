"""Fast writes of many rows, on both databases, inside the caller's transaction.

Django's `bulk_create` and `bulk_update` make an object's worth of work of every row; these take rows as they are.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

import orjson
from django.db import connection, models
from django.db.models.base import ModelState

from memoryhub.common.many_rows import insert_many
from memoryhub.long_term_memory.models import Memory

PAIRS = 450  # in one statement: below the smallest limit of parameters that SQLite is built with
# The conditions of the partial indexes over a scope's paths and over its texts in the trash.
PATHS_IN_USE = "m.path IS NOT NULL AND NOT (m.state = 'forgotten')"
TEXTS_IN_TRASH = "m.trashed_at IS NOT NULL"
Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class _Plan:
    """How rows of a model become tuples: one attribute getter, and a converter for the few columns that need one."""

    columns: tuple[str, ...]
    values_of: Callable[[Any], tuple[Any, ...]]
    converters: tuple[tuple[int, Convert], ...]
    places: dict[str, int]  # of the attributes

    def values(self, row: models.Model) -> tuple[Any, ...]:
        values = list(self.values_of(row))
        for place, convert in self.converters:
            values[place] = convert(values[place])
        return tuple(values)

    def tuples(self, rows: Sequence[models.Model]) -> list[tuple[Any, ...]]:
        return [self.values(row) for row in rows]


@lru_cache(maxsize=1)
def _vendor() -> str:
    return connection.vendor  # each look through Django's proxy takes a microsecond


@lru_cache(maxsize=64)
def _plan(model: type[models.Model], names: tuple[str, ...], vendor: str) -> _Plan:
    fields: list[Any] = [model._meta.get_field(name) for name in names] if names else list(model._meta.concrete_fields)
    converters = tuple(
        (place, convert) for place, field in enumerate(fields) if (convert := _converter(field, vendor)) is not None
    )
    getter = attrgetter(*(field.attname for field in fields))
    places = {field.attname: place for place, field in enumerate(fields)}
    return _Plan(tuple(field.column for field in fields), getter, converters, places)


def _converter(field: Any, vendor: str) -> Convert | None:
    """What a value of this field needs on its way to the database; most need nothing."""
    if isinstance(field, models.JSONField):
        return _sqlite_json if vendor == "sqlite" else lambda value: field.get_db_prep_save(value, connection)
    if isinstance(field, models.DateTimeField):
        return _sqlite_time if vendor == "sqlite" else None
    if isinstance(field, models.CharField) and field.choices:
        return lambda value: (
            value if type(value) is str else str(value)
        )  # an enum's member is a str, but not to psycopg
    return None


def _sqlite_json(value: Any) -> str:
    """A JSON value as text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, out of files of others
        return json.dumps(value)


@lru_cache(maxsize=4_096)
def _sqlite_time(value: datetime | None) -> str | None:
    """As Django writes times into SQLite."""
    return None if value is None else str(value.astimezone(UTC).replace(tzinfo=None))


def reserve_ids(model: type[models.Model], count: int) -> list[int]:
    """Ids for new rows, which nobody else will use. On SQLite the write transaction makes them ours."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if _vendor() == "sqlite":
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
            row = cursor.fetchone()
            last = row[0] if row else 0
            return list(range(last + 1, last + 1 + count))
        cursor.execute("SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)", [table, count])
        return [row[0] for row in cursor.fetchall()]


class LightRow:
    """Stands for a row that is only written: a model instance without the machinery, ten times cheaper to make."""

    model: type[models.Model]

    def __init__(self, template: dict[str, Any], values: dict[str, Any]) -> None:
        self.__dict__.update(template)
        self.__dict__.update(values)


def light_row(model: type[models.Model], **values: Any) -> Any:
    """A row of the model with its defaults; foreign keys by their `_id`."""
    return LightRow(_template(model), values)


def new_instance(model: type[models.Model], related: Mapping[str, Any], **values: Any) -> Any:
    """A new, unsaved instance with its defaults, past the constructor that costs as much as writing the row.

    `related` are the objects behind foreign keys by the field's name; their ids are taken from them.
    """
    row = model.__new__(model)
    row.__dict__.update(_template(model))
    del row.__dict__["model"]
    for name, make in _mutable_defaults(model):
        row.__dict__[name] = make()
    row.__dict__.update(values)
    row._state = ModelState()
    relate(row, related)
    return row


def relate(row: models.Model, related: Mapping[str, Any]) -> None:
    """Give an instance the objects behind its foreign keys, and their ids."""
    for name, item in related.items():
        row._state.fields_cache[name] = item
        row.__dict__[f"{name}_id"] = None if item is None else item.pk


@lru_cache(maxsize=32)
def _mutable_defaults(model: type[models.Model]) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """What each row needs a copy of its own of."""
    return tuple(
        (field.attname, field.get_default)
        for field in model._meta.concrete_fields
        if isinstance(field.get_default(), list | dict)
    )


@lru_cache(maxsize=32)
def _template(model: type[models.Model]) -> dict[str, Any]:
    defaults = {field.attname: field.get_default() for field in model._meta.concrete_fields}
    return {
        "model": model,
        **{name: None if value == "" and name.endswith("_id") else value for name, value in defaults.items()},
    }


def insert_rows(rows: Sequence[Any]) -> None:
    """Insert rows of one model, instances or light ones; rows with an automatic id get theirs here."""
    if not rows:
        return
    light = isinstance(rows[0], LightRow)
    model: Any = rows[0].model if light else type(rows[0])
    key = model._meta.pk
    if isinstance(key, models.AutoField | models.BigAutoField):
        missing = [row for row in rows if getattr(row, key.attname) is None]
        for row, pk in zip(missing, reserve_ids(model, len(missing)), strict=True):
            setattr(row, key.attname, pk)
    insert_values(model, values_of(model, rows))
    for row in () if light else rows:
        mark_stored(row)


def mark_stored(row: models.Model) -> None:
    """Tell an instance that its row stands in the database."""
    row._state.adding = False
    row._state.db = "default"


def values_of(model: type[models.Model], rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The values of rows in the order of their columns, as the driver takes them."""
    return _plan(model, (), _vendor()).tuples(rows)


def with_values(model: type[models.Model], row: tuple[Any, ...], changes: Mapping[str, Any]) -> tuple[Any, ...]:
    """A row of `values_of` with other values, by the name of the attribute, as the driver takes them."""
    plan = _plan(model, (), _vendor())
    values, places = list(row), plan.places
    for name, value in changes.items():
        values[places[name]] = value
    return tuple(values)


def converted(model: type[models.Model], name: str, value: Any) -> Any:
    """One value as the driver takes it."""
    convert = _converter(model._meta.get_field(name), _vendor())
    return convert(value) if convert else value


def insert_values(model: type[models.Model], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows of `values_of`, whose ids are known."""
    insert_many(model._meta.db_table, _plan(model, (), _vendor()).columns, rows)


def asked_for(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """The beginning of a statement that knows some rows of values as the table `asked`, with these values.

    Joined first, each of them is one seek of an index; a list of values per column would be every combination of theirs.
    """
    row = f"({', '.join(['%s'] * len(columns))})"
    values = [value for one in rows for value in one]
    return f"WITH asked({', '.join(columns)}) AS (VALUES {', '.join([row] * len(rows))})", values


def find_in_scopes(pairs: Collection[tuple[int, str]], column: str, condition: str = "") -> list[int]:
    """Return the ids of the memories that have one of these (scope id, value) pairs; each pair is one seek of an index.

    `condition` is the SQL condition of a partial index over both, with `m.` before its columns.
    """
    if not pairs:
        return []
    table, column = connection.ops.quote_name(Memory._meta.db_table), connection.ops.quote_name(column)
    where = f"{condition} AND " if condition else ""
    wanted, found = list(pairs), []
    with connection.cursor() as cursor:
        for start in range(0, len(wanted), PAIRS):
            asked, values = asked_for(("scope", "value"), wanted[start : start + PAIRS])
            cursor.execute(
                f"{asked} SELECT m.id FROM asked CROSS JOIN {table} m"  # noqa: S608 - our own names, bound values
                f" WHERE {where}m.scope_id = asked.scope AND m.{column} = asked.value",
                values,
            )
            found += [pk for (pk,) in cursor.fetchall()]
    return found


def update_memories(memories: Sequence[Memory], names: Sequence[str]) -> bool:
    """Update the named fields of rows whose version is still one less than theirs; False where one of them moved on."""
    plan = _plan(Memory, tuple(names), _vendor())
    quote = connection.ops.quote_name
    sets = ", ".join(f"{quote(column)} = %s" for column in plan.columns)
    values = [
        (*row, memory.pk, memory.version - 1) for row, memory in zip(plan.tuples(memories), memories, strict=True)
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
