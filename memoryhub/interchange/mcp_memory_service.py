"""mcp-memory-service: `{"export_metadata":{}, "memories":[{content, content_hash, tags[], created_at, updated_at,
memory_type, metadata{}}]}` with times as epoch seconds."""

import hashlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO

from memoryhub.interchange.convert import origin_of, read_objects, with_origin, write_changes, write_json_list
from memoryhub.interchange.fields import read_content, read_name, read_object, read_tags
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import MemoryRecord, Reading, Records
from memoryhub.interchange.times import read_time

NAME = "mcp-memory-service"
LIST_KEYS = ("memories",)
TYPE_TAG = "type:"


def read(stream: BinaryIO) -> Reading:
    return read_objects(read_json(stream, LIST_KEYS), to_record)


def write(records: Records) -> Iterator[str]:
    objects = (_to_object(record) for record in records)
    return write_json_list(
        objects, before='{"export_metadata": {"source": "memoryhub"}, "memories": [\n', after="\n]}\n"
    )


def to_record(data: dict[str, Any], line: int) -> MemoryRecord:
    read_object(data.get("metadata"), "metadata")
    created_at = read_time(_first(data, "created_at", "created_at_iso"), "created_at")
    memory_type = read_name(data.get("memory_type"), "memory_type")
    tags = read_tags(data.get("tags"))
    record = MemoryRecord(
        line=line,
        content=read_content(data.get("content")),
        # Its identity is the hash of its text, so that is what makes a second import of the same file a no-op.
        created_at=created_at,
        content_changed_at=read_time(_first(data, "updated_at", "updated_at_iso"), "updated_at") or created_at,
        tags=read_tags([*tags, f"{TYPE_TAG}{memory_type}"]) if memory_type else tags,
    )
    return with_origin(record, data, from_record, NAME, "content")


def _first(data: dict[str, Any], *keys: str) -> Any:
    return next((data[key] for key in keys if data.get(key) not in (None, "")), None)


def _to_object(record: MemoryRecord) -> dict[str, Any]:
    original = origin_of(record, NAME)
    if original is None:
        return from_record(record)
    complete = {**original, "content": record.content}
    merged = write_changes(complete, record, to_record, from_record)
    if merged.get("updated_at") != original.get("updated_at"):
        merged["content_hash"] = _digest(record.content)
    return merged


def from_record(record: MemoryRecord) -> dict[str, Any]:
    types = [tag.removeprefix(TYPE_TAG) for tag in record.tags if tag.startswith(TYPE_TAG)]
    return {
        "content": record.content,
        "content_hash": _digest(record.content),
        "tags": [tag for tag in record.tags if not tag.startswith(TYPE_TAG)],
        "created_at": _epoch(record.created_at),
        "updated_at": _epoch(record.content_changed_at),
        "memory_type": types[0] if types else None,
        "metadata": {},
    }


def _epoch(value: datetime | None) -> float | None:
    return None if value is None else value.timestamp()


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
