"""MemoryHub's own JSON Lines: every field of a memory, one object a line, with its versions where they are asked for.

The shape is the API's, so what `GET /memories` answers can be imported too, as a list or one a line.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memoryhub.interchange.convert import read_objects, write_json_lines
from memoryhub.interchange.fields import (
    keep_origin,
    read_choice,
    read_content,
    read_count,
    read_flag,
    read_importance,
    read_name,
    read_object,
    read_tags,
)
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import BadRecord, MemoryRecord, Reading, Records
from memoryhub.interchange.times import read_time, write_time

NAME = "memoryhub"
LIST_KEYS = ("items", "memories")
KINDS = ("episodic", "semantic", "procedural")
STATES = ("active", "fading", "archived", "forgotten")
TRUSTS = ("trusted", "unreviewed", "quarantined")
MAX_PATH_CHARACTERS = 1024
TIMES = (
    "created_at",
    "content_changed_at",
    "metadata_changed_at",
    "last_accessed_at",
    "valid_from",
    "valid_until",
    "expires_at",
)


def read(stream: BinaryIO) -> Reading:
    return read_objects(read_json(stream, LIST_KEYS), to_record)


def write(records: Records) -> Iterator[str]:
    return write_json_lines(from_record(record) for record in records)


def to_record(data: dict[str, Any], line: int) -> MemoryRecord:
    scope = read_object(data.get("scope"), "scope")
    path = read_name(data.get("path"), "path", limit=MAX_PATH_CHARACTERS)
    return MemoryRecord(
        line=line,
        public_id=read_name(data.get("id"), "id"),
        content=read_content(data.get("content"), may_be_empty=path is not None),
        agent=read_name(scope.get("agent"), "scope.agent"),
        user=read_name(scope.get("user"), "scope.user"),
        project=read_name(scope.get("project"), "scope.project"),
        session=read_name(data.get("session"), "session"),
        event=read_name(data.get("event"), "event"),
        subject=read_name(data.get("subject"), "subject") or "",
        kind=read_choice(data.get("kind"), "kind", KINDS),
        importance=read_importance(data.get("importance")),
        tags=read_tags(data.get("tags")),
        pinned=read_flag(data.get("pinned"), "pinned"),
        path=path,
        state=read_choice(data.get("state"), "state", STATES),
        trust=read_choice(data.get("trust"), "trust", TRUSTS),
        access_count=read_count(data.get("access_count"), "access_count"),
        superseded_by=read_name(data.get("superseded_by"), "superseded_by"),
        origin=_origin(data.get("origin")),
        versions=_versions(data.get("versions")),
        created_at=read_time(data.get("created_at"), "created_at"),
        content_changed_at=read_time(data.get("content_changed_at"), "content_changed_at"),
        metadata_changed_at=read_time(data.get("metadata_changed_at"), "metadata_changed_at"),
        last_accessed_at=read_time(data.get("last_accessed_at"), "last_accessed_at"),
        valid_from=read_time(data.get("valid_from"), "valid_from"),
        valid_until=read_time(data.get("valid_until"), "valid_until"),
        expires_at=read_time(data.get("expires_at"), "expires_at"),
    )


def _origin(value: Any) -> dict[str, Any] | None:
    origin = read_object(value, "origin")
    if not origin:
        return None
    if not isinstance(origin.get("format"), str) or not isinstance(origin.get("record"), dict):
        raise BadRecord("origin is not an origin")
    kept = keep_origin(origin["format"], origin["record"])
    assigned = read_object(origin.get("assigned_scope"), "origin.assigned_scope")
    return {**kept, "assigned_scope": assigned} if kept and assigned else kept


def _versions(value: Any) -> tuple[dict[str, Any], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(version, dict) for version in value):
        raise BadRecord("versions is not a list of objects")
    return tuple(value)


def from_record(record: MemoryRecord) -> dict[str, Any]:
    scope = {name: value for name in ("agent", "user", "project") if (value := getattr(record, name)) is not None}
    data: dict[str, Any] = {
        "id": record.public_id,
        "content": record.content,
        "scope": scope,
        "session": record.session,
        "event": record.event,
        "subject": record.subject or None,
        "kind": record.kind,
        "importance": record.importance,
        "tags": list(record.tags),
        "pinned": record.pinned,
        "path": record.path,
        "state": record.state,
        "trust": record.trust,
        "access_count": record.access_count,
        "superseded_by": record.superseded_by,
        **{name: write_time(getattr(record, name)) for name in TIMES},
    }
    if record.origin is not None:
        data["origin"] = dict(record.origin)
    if record.versions:
        data["versions"] = [dict(version) for version in record.versions]
    return data
