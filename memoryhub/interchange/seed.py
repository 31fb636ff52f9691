"""`memories.jsonl`: one object a line with memory_id, content, source_session_id, created_at, last_accessed,
access_count, importance, tags and an optional embedding."""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memoryhub.interchange.convert import origin_of, read_objects, with_origin, write_changes, write_json_lines
from memoryhub.interchange.fields import read_content, read_count, read_importance, read_name, read_tags
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import MemoryRecord, Reading, Records
from memoryhub.interchange.times import read_time, write_time

NAME = "seed"
LIST_KEYS = ("memories", "items")


def read(stream: BinaryIO) -> Reading:
    return read_objects(read_json(stream, LIST_KEYS), to_record)


def write(records: Records) -> Iterator[str]:
    return write_json_lines(_to_object(record) for record in records)


def to_record(data: dict[str, Any], line: int) -> MemoryRecord:
    record = MemoryRecord(
        line=line,
        public_id=read_name(data.get("memory_id"), "memory_id"),
        content=read_content(data.get("content")),
        session=read_name(data.get("source_session_id"), "source_session_id"),
        created_at=read_time(data.get("created_at"), "created_at"),
        last_accessed_at=read_time(data.get("last_accessed"), "last_accessed"),
        access_count=read_count(data.get("access_count"), "access_count"),
        importance=read_importance(data.get("importance")),
        tags=read_tags(data.get("tags")),
    )
    return with_origin(record, data, from_record, NAME, "content")


def _to_object(record: MemoryRecord) -> dict[str, Any]:
    original = origin_of(record, NAME)
    if original is None:
        return from_record(record)
    return write_changes({"content": record.content, **original}, record, to_record, from_record)


def from_record(record: MemoryRecord) -> dict[str, Any]:
    return {
        "memory_id": record.public_id,
        "content": record.content,
        "source_session_id": record.session,
        "created_at": write_time(record.created_at),
        "last_accessed": write_time(record.last_accessed_at),
        "access_count": record.access_count,
        "importance": record.importance,
        "tags": list(record.tags),
    }
