"""mem0: `{"results":[...]}`, `{"memories":[...]}` or a bare list of {id, memory, hash, metadata, user_id, agent_id,
run_id, created_at, updated_at}. A run is a session; categories become tags; everything else is kept as it came."""

import hashlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from memoryhub.interchange.convert import origin_of, read_objects, with_origin, write_changes, write_json_list
from memoryhub.interchange.fields import read_content, read_name, read_object, read_tags
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import MemoryRecord, Reading, Records
from memoryhub.interchange.times import read_time, write_time

NAME = "mem0"
LIST_KEYS = ("results", "memories")


def read(stream: BinaryIO) -> Reading:
    return read_objects(read_json(stream, LIST_KEYS), to_record)


def write(records: Records) -> Iterator[str]:
    objects = (_to_object(record) for record in records)
    return write_json_list(objects, before='{"results": [\n', after="\n]}\n")


def to_record(data: dict[str, Any], line: int) -> MemoryRecord:
    metadata = read_object(data.get("metadata"), "metadata")
    created_at = read_time(data.get("created_at"), "created_at")
    record = MemoryRecord(
        line=line,
        public_id=read_name(data.get("id"), "id"),
        content=read_content(data.get("memory"), "memory"),
        user=read_name(data.get("user_id"), "user_id"),
        agent=read_name(data.get("agent_id"), "agent_id"),
        project=read_name(data.get("app_id"), "app_id"),
        session=read_name(data.get("run_id"), "run_id"),
        created_at=created_at,
        content_changed_at=read_time(data.get("updated_at"), "updated_at") or created_at,
        tags=_tags(data, metadata),
    )
    return with_origin(record, data, from_record, NAME, "memory")


def _tags(data: dict[str, Any], metadata: dict[str, Any]) -> tuple[str, ...]:
    """mem0 has no tags; its categories, and a `tags` list that people put into the metadata, mean the same."""
    categories = data.get("categories")
    named = metadata.get("tags")
    return read_tags(
        [
            *(read_tags(categories, "categories") if isinstance(categories, list) else ()),
            *(read_tags(named, "metadata.tags") if isinstance(named, list) else ()),
        ]
    )


def _to_object(record: MemoryRecord) -> dict[str, Any]:
    original = origin_of(record, NAME)
    if original is None:
        return from_record(record)
    # The content is not kept twice, so whether it has changed shows in its time.
    complete = {**original, "memory": record.content}
    merged = write_changes(complete, record, to_record, from_record)
    if "hash" in original and merged.get("updated_at") != original.get("updated_at"):
        merged["hash"] = _hash(record.content)
    return merged


def from_record(record: MemoryRecord) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": record.public_id,
        "memory": record.content,
        "hash": _hash(record.content),
        "metadata": None,
        "user_id": record.user,
        "agent_id": record.agent,
        "run_id": record.session,
        "created_at": write_time(record.created_at),
        "updated_at": write_time(record.content_changed_at),
    }
    if record.project is not None:
        data["app_id"] = record.project
    if record.tags:
        data["categories"] = list(record.tags)
    return data


def _hash(content: str) -> str:
    """mem0 stores the MD5 of the text to find exact doubles; it protects nothing."""
    return hashlib.md5(content.encode(), usedforsecurity=False).hexdigest()
