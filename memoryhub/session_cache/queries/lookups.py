"""The one query of a look-up: session, policy, where the session stands, the entry and what is known of its key."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memoryhub.common.plain_query import PlainQuery
from memoryhub.session_cache.domain.event_tree import Path

_COLUMNS = (
    ("session_id", "s.id"),
    ("policy_id", "p.id"),
    ("cacheable", "p.cacheable"),
    ("policy_strategy", "p.strategy"),
    ("scope", "p.scope"),
    ("verify_share", "p.verify_share"),
    ("normalize_params", "p.normalize_params"),
    ("average_cost_ms", "p.average_cost_ms"),
    ("ignore_unknown_writes", "p.ignore_unknown_writes"),
    ("doubt_epoch", "e.doubt_epoch"),
    ("doubt_tool", "e.doubt_tool"),
    ("head_branch_id", "t.head_branch_id"),
    ("head_seq", "t.head_seq"),
    ("head_path", "t.head_path"),
    ("origin_branch_id", "t.origin_branch_id"),
    ("result_id", "r.id"),
    ("value", "r.value"),
    ("params", "r.params"),
    ("etag", "r.etag"),
    ("cost_ms", "r.cost_ms"),
    ("is_error", "r.is_error"),
    ("depends_on", "r.depends_on"),
    ("strategy", "r.strategy"),
    ("generation", "r.generation"),
    ("stored_at", "r.stored_at"),
    ("expires_at", "r.expires_at"),
    ("usable_until", "r.usable_until"),
    ("hit_count", "r.hit_count"),
    ("seen_branch_id", "r.seen_branch_id"),
    ("seen_seq", "r.seen_seq"),
    ("source_event", "r.source_event"),
    ("gone", "k.gone"),
    ("lease_token", "k.lease_token"),
    ("lease_expires_at", "k.lease_expires_at"),
)
_KEY = "CASE WHEN p.scope = 'workspace' THEN %s ELSE %s END"
_QUERY = PlainQuery(f"""
SELECT {", ".join(column for _, column in _COLUMNS)}
FROM workspaces_session s
LEFT JOIN session_cache_toolpolicy p ON p.workspace_id = s.workspace_id AND p.tool = %s
LEFT JOIN invalidation_invalidationepoch e ON e.workspace_id = s.workspace_id
LEFT JOIN session_cache_sessiontree t ON t.session_id = s.id
LEFT JOIN session_cache_toolresult r ON r.workspace_id = s.workspace_id AND r.key = {_KEY}
LEFT JOIN session_cache_toolkey k ON k.workspace_id = s.workspace_id AND k.key = {_KEY}
WHERE s.workspace_id = %s AND s.sid = %s
""")  # noqa: S608 - fixed names only
_NAMES = tuple(name for name, _ in _COLUMNS)


@dataclass(frozen=True, slots=True)
class Found:
    """The row of a look-up, as the database gave it, with the few conversions on demand."""

    session_id: int
    policy_id: int | None
    cacheable: bool | None
    policy_strategy: str | None
    scope: str | None
    verify_share: float | None
    normalize_params: Any
    average_cost_ms: float | None
    ignore_unknown_writes: bool | None
    doubt_epoch: int | None
    doubt_tool: str | None
    head_branch_id: int | None
    head_seq: int | None
    head_path: Any
    origin_branch_id: int | None
    result_id: int | None
    value: bytes | memoryview | None
    params: str | None
    etag: str | None
    cost_ms: float | None
    is_error: bool | None
    depends_on: str | None
    strategy: str | None
    generation: int | None
    stored_at: Any
    expires_at: Any
    usable_until: Any
    hit_count: int | None
    seen_branch_id: int | None
    seen_seq: int | None
    source_event: str | None
    gone: str | None
    lease_token: str | None
    lease_expires_at: Any

    @property
    def is_in_doubt(self) -> bool:
        """Whether a tool that may have changed any file ran since the entry was computed, and the policy minds."""
        return (self.generation or 0) < (self.doubt_epoch or 0) and not self.ignore_unknown_writes

    @property
    def head_full_path(self) -> Path:
        if self.head_branch_id is None:
            return ()
        above = as_json(self.head_path) or []
        return (*((branch, upto) for branch, upto in above), (self.head_branch_id, self.head_seq or 0))


def find(*, workspace_id: int, sid: str, tool: str, shared_key: str, session_key: str) -> Found | None:
    """Return what a look-up needs, or None where the session does not exist yet."""
    arguments: list[str | int] = [tool, shared_key, session_key, shared_key, session_key, workspace_id, sid]
    row = _QUERY.fetch(arguments)
    return Found(*row) if row is not None else None


def as_moment(value: Any) -> datetime | None:
    """Return a stored moment as aware UTC: SQLite gives texts to a plain cursor, PostgreSQL moments."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if value is None:
        return None
    moment: datetime = value
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def as_json(value: Any) -> Any:
    """Return a stored JSON column, which a plain cursor gives as text."""
    return json.loads(value) if isinstance(value, str) else value
