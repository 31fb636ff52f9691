"""Between the ledger's rows and its rules: reading a row back into what is known, and set-based writing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection, models

from memoryhub.common.many_rows import insert_many
from memoryhub.prompt_cache.domain.entries import CUT_STREAM, Entry
from memoryhub.prompt_cache.domain.sightings import Joined, Place, Sighting, from_json, to_json
from memoryhub.prompt_cache.domain.usage import STATED_FIELDS, Stated
from memoryhub.prompt_cache.models import UsageRecord

KEYS_PER_QUERY = 500


def known_from_row(row: UsageRecord) -> Joined:
    """What the ledger knows about the part of a response that a row books."""
    if row.sightings:
        return Joined(from_json(row.sightings["declared"]), from_json(row.sightings["transcript"]))
    return Joined.of(
        Sighting(
            key=row.message_id,
            part=row.part,
            kind=row.kind,
            source=row.source,
            model=row.model,
            stated=Stated(**dict(zip(STATED_FIELDS, row.stated, strict=True))),
            occurred_at=row.occurred_at,
            region=row.region,
            convention=row.convention,
            service_tier=row.service_tier,
            speed=row.speed,
            inference_geo=row.inference_geo,
            request_id=row.request_id,
            place=Place(row.session, row.project, row.agent, row.user, row.chain),
            started_at=row.started_at,
            first_byte_at=row.first_byte_at,
            ended_at=row.ended_at,
            diagnostics=row.diagnostics,
            sidechain=row.sidechain,
            credit=row.credit,
            cut=CUT_STREAM in row.flags,
        )
    )


def row_values(known: Joined, entry: Entry, version: str) -> dict[str, Any]:
    """The columns of the row that books an entry."""
    seen = known.resolved()
    both = known.declared is not None and known.transcript is not None
    tokens, stated = entry.tokens, seen.stated
    return {
        "occurred_at": seen.occurred_at,
        "state": entry.state,
        "part": seen.part,
        "model": seen.model,
        "project": seen.place.project,
        "agent": seen.place.agent,
        "user": seen.place.user,
        "session": seen.place.session,
        "input_tokens": tokens.input,
        "cache_write_5m_tokens": tokens.cache_write_5m,
        "cache_write_1h_tokens": tokens.cache_write_1h,
        "cache_read_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
        "cost_pico": entry.cost_pico,
        "nocache_pico": entry.nocache_pico,
        "message_id": seen.key,
        "request_id": seen.request_id,
        "chain": seen.place.chain,
        "kind": seen.kind,
        "source": seen.source,
        "convention": seen.convention,
        "region": seen.region,
        "service_tier": seen.service_tier,
        "speed": seen.speed,
        "inference_geo": seen.inference_geo,
        "sidechain": seen.sidechain,
        "web_search_requests": stated.web_searches or 0,
        "web_fetch_requests": stated.web_fetches or 0,
        "thinking_tokens": stated.thinking,
        "started_at": seen.started_at,
        "first_byte_at": seen.first_byte_at,
        "ended_at": seen.ended_at,
        "price_book_version": version,
        "flags": list(entry.flags),
        "credit": seen.credit,
        "stated": list(stated.numbers()),
        "diagnostics": seen.diagnostics,
        "sightings": _both_blocks(known) if both else None,
    }


def _both_blocks(known: Joined) -> dict[str, Any]:
    assert known.declared is not None
    assert known.transcript is not None
    return {"declared": to_json(known.declared), "transcript": to_json(known.transcript)}


def upsert(
    model: type[models.Model], rows: Iterable[dict[str, Any]], *, unique: Sequence[str], added: bool = False
) -> None:
    """Insert rows, or where the unique columns are taken overwrite (or add up) the others.

    Django's bulk_create makes an object of every row, and bulk_update builds a CASE per value; this is ten times faster.
    """
    rows = list(rows)
    if not rows:
        return
    fields = [_field(model, name) for name in rows[0]]
    columns = [field.column for field in fields]
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)
    key = [_field(model, name).column for name in unique]
    kept = {*key, "created_at"}
    changes = ", ".join(
        f"{quote(column)} = {f'{table}.{quote(column)} + ' if added else ''}excluded.{quote(column)}"
        for column in columns
        if column not in kept
    )
    tail = f"ON CONFLICT ({', '.join(map(quote, key))}) DO UPDATE SET {changes}"
    insert_many(model._meta.db_table, columns, _prepared(fields, (row.values() for row in rows)), tail=tail)


def update_columns(model: type[models.Model], rows: Sequence[models.Model], *, names: Sequence[str]) -> None:
    """Write these columns of many rows by one prepared statement."""
    if not rows:
        return
    fields = [_field(model, name) for name in names]
    quote = connection.ops.quote_name
    changes = ", ".join(f"{quote(field.column)} = %s" for field in fields)
    statement = f"UPDATE {quote(model._meta.db_table)} SET {changes} WHERE id = %s"  # noqa: S608
    values = ([*(getattr(row, name) for name in names), row.pk] for row in rows)
    with connection.cursor() as cursor:
        cursor.executemany(statement, _prepared([*fields, model._meta.pk], values))


def _field(model: type[models.Model], name: str) -> models.Field[Any, Any]:
    found = model._meta.get_field(name)
    assert isinstance(found, models.Field)
    return found


def _prepared(fields: Sequence[Any], rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    """The values of rows as the driver takes them."""
    special = [(index, ready) for index, field in enumerate(fields) if (ready := _preparation(field))]
    values = []
    for row in rows:
        ready_row = list(row)
        for index, ready in special:
            if ready_row[index] is not None:
                ready_row[index] = ready(ready_row[index])
        values.append(ready_row)
    return values


def _preparation(field: models.Field[Any, Any]) -> Callable[[Any], Any] | None:
    """What a value needs before the driver takes it. Numbers and texts need nothing; asking every field took most of the time."""
    if isinstance(field, models.DateTimeField):
        return _naive_utc_text if connection.vendor == "sqlite" else None
    if isinstance(field, models.JSONField):
        return json.dumps if connection.vendor == "sqlite" else _postgres_json()
    if isinstance(field, models.DateField):
        return str if connection.vendor == "sqlite" else None
    return None


def _postgres_json() -> Callable[[Any], Any]:
    from psycopg.types.json import Jsonb  # loaded where PostgreSQL is used

    return Jsonb


def _naive_utc_text(moment: datetime) -> str:
    """As Django stores times on SQLite."""
    return str(moment.astimezone(UTC).replace(tzinfo=None))
