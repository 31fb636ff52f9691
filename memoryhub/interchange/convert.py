"""The two steps all JSON formats share: objects into records, and records back into objects without losing anything."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from memoryhub.interchange.fields import keep_origin
from memoryhub.interchange.json_stream import Element
from memoryhub.interchange.record import BadRecord, MemoryRecord, Problem, Reading

# What the hub gives a memory that says nothing about it.
DEFAULT_IMPORTANCE = 0.5
DEFAULT_AGENT = "default"

ToRecord = Callable[[dict[str, Any], int], MemoryRecord]
FromRecord = Callable[[MemoryRecord], dict[str, Any]]


def read_objects(elements: Iterable[Element], to_record: ToRecord) -> Reading:
    """Each object as a record; what is no object, or not a good one, as a Problem."""
    for element in elements:
        if isinstance(element, Problem):
            yield element
            continue
        line, value = element
        if not isinstance(value, dict):
            yield Problem(line, "not a JSON object")
            continue
        try:
            yield to_record(value, line)
        except BadRecord as error:
            yield Problem(line, str(error))


def without(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}


def origin_of(record: MemoryRecord, format_name: str) -> dict[str, Any] | None:
    """What a record kept from this format; None when it came from elsewhere."""
    if record.origin is None or record.origin.get("format") != format_name:
        return None
    kept = record.origin.get("record")
    return kept if isinstance(kept, dict) else None


def write_changes(
    original: dict[str, Any], record: MemoryRecord, to_record: ToRecord, from_record: FromRecord
) -> dict[str, Any]:
    """The original object with only those fields rewritten that have changed since it was read.

    So a time keeps its own spelling, a field stays absent, and an unknown field stays where it was.
    """
    before = to_record(original, 0)
    then, now = from_record(before), from_record(_without_defaults(record, before))
    merged = dict(original)
    for key, value in now.items():
        if key not in then or then[key] != value:
            merged[key] = value
    for key in then:
        if key not in now:
            merged.pop(key, None)
    return merged


def _without_defaults(record: MemoryRecord, before: MemoryRecord) -> MemoryRecord:
    """The record without what only the hub said: the time of import, the middle importance, the default agent."""
    changes: dict[str, Any] = {}
    if before.created_at is None:
        changes["created_at"] = None
        if record.content_changed_at == record.created_at:
            changes["content_changed_at"] = None
    if before.importance is None and record.importance == DEFAULT_IMPORTANCE:
        changes["importance"] = None
    if (before.agent, before.user, before.project) == (None, None, None):
        changes |= _without_assigned_scope(record)
    if set(record.tags) == set(before.tags):
        changes["tags"] = before.tags
    return replace(record, **changes)


def _without_assigned_scope(record: MemoryRecord) -> dict[str, None]:
    scope = {"agent": record.agent, "user": record.user, "project": record.project}
    assigned = (record.origin or {}).get("assigned_scope") or {"agent": DEFAULT_AGENT}
    return dict.fromkeys(scope) if scope == {**dict.fromkeys(scope), **assigned} else {}


def with_origin(
    record: MemoryRecord, data: dict[str, Any], from_record: FromRecord, format_name: str, *content_keys: str
) -> MemoryRecord:
    """The record with what its format said, where the record's own fields could not say it again."""
    if from_record(record) == data and None not in data.values():
        return record
    return replace(record, origin=keep_origin(format_name, without(data, *content_keys)))


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def write_json_lines(values: Iterable[dict[str, Any]]) -> Iterator[str]:
    for value in values:
        yield dump(value) + "\n"


def write_json_list(values: Iterable[dict[str, Any]], *, before: str = "[\n", after: str = "\n]\n") -> Iterator[str]:
    """A JSON array, one element a line, without holding it whole."""
    yield before
    separator = ""
    for value in values:
        yield separator + dump(value)
        separator = ",\n"
    yield after
