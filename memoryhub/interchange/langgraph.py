"""LangGraph store: items {namespace[], key, value{}, created_at, updated_at}, as a list, one a line, or below "items".

A value's text is the memory; a value without one is kept as its JSON. Namespace parts such as ("users", "u1") set the
scope; the namespace itself becomes a tag, and everything is kept for the way back.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

from memoryhub.interchange.convert import dump, origin_of, read_objects, without, write_json_list
from memoryhub.interchange.fields import keep_origin, read_content, read_name, read_tags
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import BadRecord, MemoryRecord, Reading, Records
from memoryhub.interchange.times import read_time, write_time

NAME = "langgraph"
LIST_KEYS = ("items", "results")
# Under which key a value holds its text, the usual names first.
TEXT_KEYS = ("content", "text", "memory", "data", "value", "fact")
_SCOPES = {"user": "user", "agent": "agent", "assistant": "agent", "project": "project"}


def read(stream: BinaryIO) -> Reading:
    return read_objects(read_json(stream, LIST_KEYS), to_record)


def write(records: Records) -> Iterator[str]:
    return write_json_list(_to_object(record) for record in records)


def to_record(data: dict[str, Any], line: int) -> MemoryRecord:
    namespace, value = _namespace(data.get("namespace")), data.get("value")
    if not isinstance(value, dict):
        raise BadRecord("value is not an object")
    key = read_name(data.get("key"), "key", limit=1000)
    if key is None:
        raise BadRecord("key is missing")
    text_key = next((name for name in TEXT_KEYS if isinstance(value.get(name), str) and value[name].strip()), None)
    content = value[text_key] if text_key else _as_json(value)
    rest = without(value, text_key) if text_key else {}
    created_at, scope = read_time(data.get("created_at"), "created_at"), _scope(namespace)
    return MemoryRecord(
        line=line,
        content=read_content(content, "value"),
        subject=read_name("/".join((*namespace, key))[:200], "namespace") or "",
        created_at=created_at,
        content_changed_at=read_time(data.get("updated_at"), "updated_at") or created_at,
        tags=read_tags(["namespace:" + "/".join(namespace)[:180]] if namespace else []),
        origin=keep_origin(NAME, {**data, "value": rest, "text_key": text_key}),
        agent=scope.get("agent"),
        user=scope.get("user"),
        project=scope.get("project"),
    )


def _namespace(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(".")
    if not isinstance(value, list) or not all(isinstance(part, str) for part in value):
        raise BadRecord("namespace is not a list of texts")
    return tuple(value)


def _scope(namespace: tuple[str, ...]) -> dict[str, str]:
    scope: dict[str, str] = {}
    for label, value in pairwise(namespace):
        field = _SCOPES.get(label.lower().removesuffix("_id").removesuffix("s"))
        if field and field not in scope and value:
            scope[field] = read_name(value, "namespace") or value
    return scope


def _as_json(value: dict[str, Any]) -> str:
    try:
        return dump(value)
    except ValueError:
        raise BadRecord("value holds a number that JSON can't hold") from None


def _to_object(record: MemoryRecord) -> dict[str, Any]:
    kept = origin_of(record, NAME)
    if kept is None:
        return from_record(record)
    text_key, value = kept.get("text_key"), kept.get("value")
    data = without(kept, "text_key")
    # The order of the keys inside a value is not part of JSON's meaning; their values are.
    data["value"] = {text_key: record.content, **(value or {})} if text_key else _value_of(record.content)
    known_at = read_time(kept.get("updated_at") or kept.get("created_at"), "updated_at") or record.created_at
    if record.content_changed_at != known_at:
        data["updated_at"] = write_time(record.content_changed_at)
    return data


def _value_of(content: str) -> dict[str, Any]:
    """The object a content was, or a content edited since into something that is no object any more."""
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"content": content}


def from_record(record: MemoryRecord) -> dict[str, Any]:
    scope = [
        part for name in ("agent", "user", "project") if (value := getattr(record, name)) for part in (name, value)
    ]
    return {
        "namespace": ["memories", *scope],
        "key": record.public_id,
        "value": {"content": record.content, "tags": list(record.tags), "importance": record.importance},
        "created_at": write_time(record.created_at),
        "updated_at": write_time(record.content_changed_at),
    }
