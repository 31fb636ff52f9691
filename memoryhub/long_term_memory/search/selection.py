"""Which documents a search may return, as SQL conditions, and how many they can be at most."""

# ruff: noqa: S608 - only names of our own tables and columns are put into statements; values are bound

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memoryhub.long_term_memory.models import (
    MEMORY_MASK,
    SCOPE_SHIFT,
    Memory,
    MemoryState,
    MemoryTag,
    Scope,
    Tag,
    Trust,
)
from memoryhub.long_term_memory.search import documents
from memoryhub.long_term_memory.search.base import Where
from memoryhub.long_term_memory.search.history import unchanged_since
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.workspaces.models import Session, Workspace

SMALL = 6_000  # up to so many documents are read and scored whole
MAX_SCOPES = 64  # more scopes than this are matched by a subquery instead of key ranges
NOTHING = Where("1 = 0")


@dataclass(frozen=True, slots=True)
class Selection:
    """The condition, the scopes it names (None: too many to list), and whether its documents can all be read."""

    where: Where
    scope_ids: list[int] | None
    is_small: bool
    keys: Where | None = None  # a narrower way in, where a tag or a session is rarer than the scope


def select(workspace: Workspace, request: SearchRequest, now: datetime) -> Selection:
    """Turn scope and filters into a condition; filters come before ranking and limit, and are never relaxed."""
    scope_ids, in_scope = _scope(workspace, request)
    where = Where("d.workspace_id = %s", [workspace.pk]) & in_scope & standing(request, now)
    where = where & _filters(request)
    session_id = None
    if request.session is not None:
        session_id = (
            Session.objects.filter(workspace=workspace, sid=request.session).values_list("id", flat=True).first()
        )
        where = where & (Where("d.session_id = %s", [session_id]) if session_id else NOTHING)
    tag_ids = dict(
        Tag.objects.filter(
            workspace=workspace, name__in=[*request.tags, *request.tags_any, *request.tags_none]
        ).values_list("name", "id")
    )
    where = where & _tags(request, tag_ids)
    keys = _narrow_way(request, tag_ids, session_id)
    small = keys is not None or _is_small(workspace, scope_ids)
    return Selection(where, scope_ids, small, keys)


def _scope(workspace: Workspace, request: SearchRequest) -> tuple[list[int] | None, Where]:
    named = request.scope.named()
    if not named:
        return None, Where()
    found = list(Scope.objects.filter(workspace=workspace, **named).values_list("id", flat=True)[: MAX_SCOPES + 1])
    if not found:
        return [], NOTHING
    if len(found) <= MAX_SCOPES:
        return found, key_ranges(found)
    columns = " AND ".join(f's."{name}" = %s' for name in named)
    return None, Where(  # the names of columns come from ScopeNames
        f"(d.key >> {SCOPE_SHIFT}) IN (SELECT s.id FROM long_term_memory_scope s WHERE s.workspace_id = %s AND {columns})",
        [workspace.pk, *named.values()],
    )


def key_ranges(scope_ids: Sequence[int]) -> Where:
    """Documents of these scopes: each is one range of keys."""
    ranges = " OR ".join("d.key BETWEEN %s AND %s" for _ in scope_ids)
    values = [
        bound for scope_id in scope_ids for bound in (scope_id << SCOPE_SHIFT, scope_id << SCOPE_SHIFT | MEMORY_MASK)
    ]
    return Where(f"({ranges})", values)


def standing(request: SearchRequest, now: datetime) -> Where:
    """Only what is current, at `now` or at the moment that the search looks back to."""
    at = (request.as_of or now).timestamp()
    present = now.timestamp()
    codes = documents.STATE_CODES
    states = list(request.states) or [MemoryState.ACTIVE, MemoryState.FADING]
    archived_too = "archived" in request.include or MemoryState.ARCHIVED in states
    if archived_too and MemoryState.ARCHIVED not in states:
        states.append(MemoryState.ARCHIVED)
    where = Where(f"d.state IN ({', '.join(str(codes[state]) for state in states)})")
    if not archived_too:  # the curve may have crossed before the job looks
        where = where & Where("(d.archives_at IS NULL OR d.archives_at > %s)", [at])
    if "quarantined" not in request.include:
        where = where & Where(f"d.trust <> {documents.TRUST_CODES[Trust.QUARANTINED]}")
    where = where & Where("(d.expires_at IS NULL OR d.expires_at > %s)", [present])
    where = where & Where("(d.valid_from IS NULL OR d.valid_from <= %s)", [at])
    if "superseded" in request.include:
        where = where & Where("(d.valid_until IS NULL OR d.valid_until > %s OR d.superseded_at IS NOT NULL)", [at])
    else:
        where = where & Where("(d.valid_until IS NULL OR d.valid_until > %s)", [at])
        where = where & Where("(d.superseded_at IS NULL OR d.superseded_at > %s)", [at])
    if request.as_of is not None:
        where = where & Where("d.created <= %s", [at]) & unchanged_since(request.as_of)
    return where


def _filters(request: SearchRequest) -> Where:
    where = Where()
    if request.kinds:
        where = where & Where(f"d.kind IN ({', '.join(str(documents.KIND_CODES[kind]) for kind in request.kinds)})")
    if request.since is not None:
        where = where & Where("d.created >= %s", [request.since.timestamp()])
    if request.until is not None:
        where = where & Where("d.created < %s", [request.until.timestamp()])
    if request.importance_gte is not None:
        where = where & Where("d.importance >= %s", [request.importance_gte])
    return where


def _tags(request: SearchRequest, tag_ids: dict[str, int]) -> Where:
    where = Where()
    for name in request.tags:
        where = where & (_tagged([tag_ids[name]]) if name in tag_ids else NOTHING)
    if request.tags_any:
        known = [tag_ids[name] for name in request.tags_any if name in tag_ids]
        where = where & (_tagged(known) if known else NOTHING)
    excluded = [tag_ids[name] for name in request.tags_none if name in tag_ids]
    if excluded:
        tagged = _tagged(excluded)
        where = where & Where(f"NOT {tagged.sql}", tagged.values)
    return where


def _tagged(tags: Sequence[int]) -> Where:
    holes = ", ".join(["%s"] * len(tags))
    return Where(
        "EXISTS (SELECT 1 FROM long_term_memory_memorytag mt "
        f"WHERE mt.tag_id IN ({holes}) AND mt.memory_id = (d.key & {MEMORY_MASK}))",
        list(tags),
    )


def _narrow_way(request: SearchRequest, tag_ids: dict[str, int], session_id: int | None) -> Where | None:
    """Keys by way of a rare tag or a session, where that is a small set."""
    if session_id is not None and Memory.objects.filter(session_id=session_id)[: SMALL + 1].count() <= SMALL:
        return _through("SELECT m.scope_id, m.id FROM long_term_memory_memory m WHERE m.session_id = %s", [session_id])
    for name in request.tags:
        if name in tag_ids and MemoryTag.objects.filter(tag_id=tag_ids[name])[: SMALL + 1].count() <= SMALL:
            return _through(
                "SELECT m.scope_id, m.id FROM long_term_memory_memorytag t JOIN long_term_memory_memory m "
                "ON m.id = t.memory_id WHERE t.tag_id = %s",
                [tag_ids[name]],
            )
    return None


def _through(rows: str, values: list[int]) -> Where:
    return Where(f"d.key IN (SELECT (r.scope_id << {SCOPE_SHIFT}) | r.id FROM ({rows}) r)", list(values))


def _is_small(workspace: Workspace, scope_ids: list[int] | None) -> bool:
    rows = (
        Memory.objects.filter(scope_id__in=scope_ids)
        if scope_ids is not None
        else Memory.objects.filter(workspace=workspace)
    )
    return rows.order_by()[: SMALL + 1].count() <= SMALL
