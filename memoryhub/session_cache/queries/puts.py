"""The one query of a put: everything that has to be known before a result is stored, read inside the transaction."""

import json
from dataclasses import dataclass
from typing import Any

from memoryhub.common.plain_query import PlainQuery
from memoryhub.session_cache.models import ToolPolicy

_POLICY_FIELDS = [field.attname for field in ToolPolicy._meta.concrete_fields]
_SQL = """
SELECT sp.id, sp.capacity_bytes, sp.used_bytes, sp.entry_count, sp.floor, sp.evicted_count,
       COALESCE(e.epoch, 0),
       r.id, r.size_bytes, r.etag, r.depends_on,
       k.gone, k.lease_token, k.lease_generation,
       t.head_branch_id, t.head_seq, h.event_id
FROM workspaces_session s
LEFT JOIN session_cache_toolspace sp ON {space}
LEFT JOIN invalidation_invalidationepoch e ON e.workspace_id = s.workspace_id
LEFT JOIN session_cache_toolresult r ON r.workspace_id = s.workspace_id AND r.key = %s
LEFT JOIN session_cache_toolkey k ON k.workspace_id = s.workspace_id AND k.key = %s
LEFT JOIN session_cache_sessiontree t ON t.session_id = s.id
LEFT JOIN session_cache_sessionevent h ON h.branch_id = t.head_branch_id AND h.seq = t.head_seq
WHERE s.id = %s
"""
_OWN = PlainQuery(_SQL.format(space="sp.session_id = s.id"))
_SHARED = PlainQuery(_SQL.format(space="sp.workspace_id = s.workspace_id AND sp.session_id IS NULL"))
_POLICY = PlainQuery(
    f"SELECT {', '.join(_POLICY_FIELDS)} FROM session_cache_toolpolicy WHERE workspace_id = %s AND tool = %s"  # noqa: S608
)


@dataclass(slots=True)
class PutFacts:
    """What a put finds. The figures of the space change as room is made; the rest stays as it was read."""

    space_id: int | None
    capacity_bytes: int | None
    used_bytes: int
    entry_count: int
    floor: float
    evicted_count: int
    epoch: int
    old_id: int | None
    old_size: int | None
    old_etag: str | None
    old_depends_on: str | None
    gone: str | None
    lease_token: str | None
    lease_generation: int | None
    head_branch_id: int | None
    head_seq: int | None
    head_event: str | None


def find_for_put(*, session_id: int, key: str, shared: bool) -> PutFacts | None:
    """Return what a put needs to know, or None where the session has been removed."""
    row: Any = (_SHARED if shared else _OWN).fetch([key, key, session_id])
    return PutFacts(*row) if row is not None else None


def find_policy_fast(workspace_id: int, tool: str) -> ToolPolicy | None:
    """Return a tool's policy by one plain query; the same as find_policy, for the path that every call takes."""
    row = _POLICY.fetch([workspace_id, tool])
    if row is None:
        return None
    values = dict(zip(_POLICY_FIELDS, row, strict=True))
    for name in ("invalidates", "redact_params", "normalize_params"):
        values[name] = _as_list(values[name])
    for name in ("cacheable", "may_change_anything", "ignore_unknown_writes"):
        values[name] = bool(values[name])
    return ToolPolicy(**values)


def _as_list(value: Any) -> list[str]:
    return list(json.loads(value)) if isinstance(value, str) else list(value or [])
