"""Rows as the objects of Anthropic's memory stores."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from memoryhub.long_term_memory.models import Memory, MemoryStore, MemoryVersion, Operation
from memoryhub.long_term_memory.queries.files import Directory


def page_as_dict(items: Sequence[Any], next_page: str | None) -> dict[str, Any]:
    return {"data": list(items), "next_page": next_page}


def store_as_dict(store: MemoryStore) -> dict[str, Any]:
    return {
        "id": store.public_id,
        "type": "memory_store",
        "name": store.name,
        "description": store.description,
        "metadata": store.metadata,
        "created_at": _time(store.created_at),
        "updated_at": _time(store.updated_at),
        "archived_at": _time(store.archived_at),
    }


def memory_as_dict(memory: Memory, store: MemoryStore, version_id: str, view: str) -> dict[str, Any]:
    """A memory; its content only in the full view."""
    size: Any = getattr(memory, "size_bytes", None)
    return {
        "id": memory.public_id,
        "type": "memory",
        "memory_store_id": store.public_id,
        "memory_version_id": version_id,
        "path": memory.path,
        "content": memory.content if view == "full" else None,
        "content_sha256": memory.content_sha256,
        "content_size_bytes": len(memory.content.encode()) if size is None else size,
        "created_at": _time(memory.created_at),
        "updated_at": _time(max(memory.content_changed_at, memory.metadata_changed_at)),
    }


def prefix_as_dict(directory: Directory) -> dict[str, Any]:
    return {"type": "memory_prefix", "path": directory.path}


def version_as_dict(version: MemoryVersion, store: MemoryStore, view: str) -> dict[str, Any]:
    """A version; a redacted one keeps only who and when, a deletion has no content of its own."""
    redacted = version.redacted_at is not None
    content = None if redacted or version.operation == Operation.DELETED else version.content
    return {
        "id": version.public_id,
        "type": "memory_version",
        "memory_id": version.memory.public_id,
        "memory_store_id": store.public_id,
        "operation": version.operation,
        "path": None if redacted else version.facts.get("path"),
        "content": content if view == "full" else None,
        "content_sha256": None if content is None else version.content_sha256,
        "content_size_bytes": None if content is None else len(content.encode()),
        "created_at": _time(version.created_at),
        "created_by": _actor(version),
        "redacted_at": _time(version.redacted_at),
        "redacted_by": {"type": "api_actor", "api_key_id": version.redacted_by} if redacted else None,
    }


def _actor(version: MemoryVersion) -> dict[str, str] | None:
    if version.session is not None:
        return {"type": "session_actor", "session_id": version.session.sid}
    if version.actor_kind == "key":
        return {"type": "api_actor", "api_key_id": version.actor_id}
    if version.actor_kind == "user":
        return {"type": "user_actor", "user_id": version.actor_id}
    return {"type": "service_account_actor", "service_account_id": version.actor_id} if version.actor_id else None


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")
