"""Lines of a Claude Code transcript as events of the tree. Transcripts are messy: what can't be used is None, never an error.

`uuid` and `parentUuid` chain all lines, progress and system records too, so those become notes: they are nobody's past,
but whatever names one as its parent hangs on the note's own place. A compaction is a `compact_boundary` line (its past
is `logicalParentUuid`) followed by a user line with the summary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from memoryhub.session_cache.domain.context_window import call_ids

_MAX_ID = 200


@dataclass(frozen=True, slots=True)
class ImportedEvent:
    """One line, ready to hang. A side event (a sub-agent's) never moves the session's head."""

    event_id: str
    parent_id: str | None
    kind: str
    content: bytes
    role: str = ""
    tool_call_id: str = ""
    tokens: int | None = None
    occurred_at: datetime | None = None
    is_side: bool = False


def event_of_line(line: Mapping[str, Any]) -> ImportedEvent | None:
    """Return the event of a parsed line, or None where the line is none."""
    event_id, kind = _text(line.get("uuid")), line.get("type")
    if not event_id:
        return None
    message = line.get("message")
    if kind in ("user", "assistant") and isinstance(message, Mapping) and not line.get("isApiErrorMessage"):
        return _conversation(line, event_id, str(kind), message)
    parent = _text(line.get("logicalParentUuid")) or _text(line.get("parentUuid"))
    label = {"type": kind if isinstance(kind, str) else "unknown"}
    if isinstance(line.get("subtype"), str):
        label["subtype"] = line["subtype"]
    return ImportedEvent(
        event_id,
        parent or None,
        "note",
        _json(label),
        occurred_at=_moment(line.get("timestamp")),
        is_side=bool(line.get("isSidechain")),
    )


def _conversation(line: Mapping[str, Any], event_id: str, line_type: str, message: Mapping[str, Any]) -> ImportedEvent:
    content = message.get("content", "")
    role = message.get("role") if message.get("role") in ("user", "assistant", "system") else line_type
    blocks = content if isinstance(content, list) else []
    types = {str(block.get("type")) for block in blocks if isinstance(block, Mapping)}
    kind = "message"
    if line.get("isCompactSummary"):
        kind = "compaction"
    elif types == {"tool_use"} or types == {"tool_result"}:
        (kind,) = types
    made, answered = call_ids(kind, content)
    return ImportedEvent(
        event_id,
        _text(line.get("parentUuid")) or None,
        kind,
        _json(content),
        role=str(role),
        tool_call_id=next(iter([*made, *answered]), "")[:_MAX_ID],
        occurred_at=_moment(line.get("timestamp")),
        is_side=bool(line.get("isSidechain")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) and 0 < len(value) <= _MAX_ID and "\0" not in value else ""


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # half a surrogate pair, or a number beyond 64 bits
        return b'"(content that can not be stored)"'


def _moment(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
