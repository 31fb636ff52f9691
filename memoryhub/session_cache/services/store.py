"""Storing a tool result, or saying in one word why not."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, connections

from memoryhub.common import clock, errors
from memoryhub.invalidation import services as invalidation
from memoryhub.invalidation.domain.dependency import Dependency
from memoryhub.invalidation.domain.selector import Subject
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State
from memoryhub.invalidation.queries import list_changes_after
from memoryhub.invalidation.strategies import judge
from memoryhub.invalidation.strategies.ttl import expiry
from memoryhub.session_cache.domain import storing
from memoryhub.session_cache.domain.cache_key import canonical_json, redacted
from memoryhub.session_cache.domain.eviction import DEFAULT_COST_MS, POLICIES, Facts
from memoryhub.session_cache.domain.storing import Decision, Refusal
from memoryhub.session_cache.models import ToolDependency, ToolKey, ToolPolicy, ToolResult, ToolSpace
from memoryhub.session_cache.queries import policies as policy_queries
from memoryhub.session_cache.queries.puts import PutFacts, find_for_put, find_policy_fast
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.blobs import insert_rows
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.entries import Doomed, doomed, remove_entries
from memoryhub.session_cache.services.leases import release_lease
from memoryhub.session_cache.services.policies import check_seconds
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Session

EVICT_AT_MOST = 5000  # entries in one request; far more than one entry of a fifth of the capacity needs


class BadCost(errors.Invalid):
    slug = "bad-cost"
    title = "cost_ms is not negative"


@dataclass(frozen=True, slots=True)
class ToolValue:
    """What a tool answered, and what is known about it."""

    value: Any
    ttl_seconds: float | None = None
    depends_on: tuple[Dependency, ...] = ()
    cost_ms: float | None = None
    lease_token: str = ""
    is_error: bool = False
    verifies: str = ""  # the etag of a hit that was run again to compare

    def __post_init__(self) -> None:
        check_seconds("ttl_seconds", self.ttl_seconds)
        if self.cost_ms is not None and not 0 <= self.cost_ms < 10**12:
            raise BadCost("cost_ms is 0 or more.")


@dataclass(frozen=True, slots=True)
class Stored:
    """The outcome of a put: stored, or the reason why not."""

    key: str
    stored: bool
    reason: str = ""
    size_bytes: int = 0
    expires_at: datetime | None = None
    expires_in_seconds: float | None = None
    etag: str = ""
    changes: tuple[str, ...] = ()  # what the tool's policy says that a run of it makes invalid
    may_change_anything: bool = False  # no policy says what a run of it changes, or one says that this may be anything


class _Refused(Exception):
    """Leaves the transaction's steps with a reason; what was done before it stays."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def store_tool_result(*, session: Session, call: ToolCall, given: ToolValue) -> Stored:
    """Store what a tool answered, in one transaction; `changes` says what its run makes invalid elsewhere.

    1. The policy decides; a refused put removes the old value, for it is no longer the tool's answer.
    2. The lease is checked against every invalidation since it was given: what was computed before a change is refused.
    3. The old value's size is taken off, room is made by priority, the entry and its dependencies are written.
    """
    policy = find_policy_fast(session.workspace_id, call.tool)
    done = _store_by_policy(session, call, given, policy)
    if policy is None or policy.may_change_anything:
        done = replace(done, may_change_anything=True)
    return replace(done, changes=tuple(policy.invalidates)) if policy is not None and policy.invalidates else done


def _store_by_policy(session: Session, call: ToolCall, given: ToolValue, policy: ToolPolicy | None) -> Stored:
    workspace = session.workspace
    if policy is not None and policy.normalize_params:
        call = call.with_normal_text(policy.normalize_params)
    key = call.key_for(policy.scope if policy else None)
    data = encode_value(given.value)
    if given.cost_ms is not None and not given.is_error:
        usage.note_cost(workspace_id=workspace.pk, tool=call.tool, cost_ms=given.cost_ms)
    if policy is None or not policy.cacheable:  # the commonest case of all tools, and nothing to write
        decision = storing.decide(
            policy_queries.rule_of(policy), ttl_seconds=None, is_error=False, size_bytes=0, capacity_bytes=1
        )
        return _refused(session, call, key, given, decision.refusal or Refusal.UNCACHEABLE)
    if data is None:
        return _refused(session, call, key, given, Refusal.UNCACHEABLE)
    try:
        with write_transaction():
            return _store(session, call, policy, key, data, given)
    except _Refused as refused:
        return _refused(session, call, key, given, refused.refusal)


def encode_value(value: Any) -> bytes | None:
    """Return a value's JSON, or None where it has none that both databases and every client can read."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError):
        return None


def _refused(session: Session, call: ToolCall, key: str, given: ToolValue, refusal: Refusal) -> Stored:
    workspace_id = session.workspace_id
    usage.note_refusal(workspace_id=workspace_id, session_id=session.pk, tool=call.tool)
    if refusal is not Refusal.STALE_LEASE:
        with write_transaction():
            old = ToolResult.objects.filter(workspace_id=workspace_id, key=key)
            rows = old.values_list("pk", "space_id", "key", "size_bytes")
            remove_entries(workspace_id=workspace_id, entries=doomed(rows), gone="")
    if given.lease_token:
        release_lease(workspace_id=workspace_id, key=key, token=given.lease_token)
    return Stored(key, stored=False, reason=refusal.value)


def _store(session: Session, call: ToolCall, policy: ToolPolicy, key: str, data: bytes, given: ToolValue) -> Stored:
    shared = policy.scope == ToolPolicy.Scope.WORKSPACE
    facts = _hold(session, key, shared=shared)
    capacity = facts.capacity_bytes or capacity_of(shared=shared)
    decision = storing.decide(
        policy_queries.rule_of(policy),
        ttl_seconds=given.ttl_seconds,
        is_error=given.is_error,
        size_bytes=len(data),
        capacity_bytes=capacity,
    )
    if decision.refusal is not None:
        raise _Refused(decision.refusal)
    _check_lease(session, call, key, given, facts)
    etag = hashlib.sha256(data).hexdigest()
    if facts.old_id is not None:
        _take_off_old(session, call, given, etag, facts)
    _make_room(session.workspace_id, facts, len(data), capacity)
    entry = _entry(session, call, policy, key, data, given, decision, facts, etag)
    _write(entry, given, facts)
    lives = None if entry.expires_at is None else (entry.expires_at - entry.stored_at).total_seconds()
    return Stored(
        key,
        stored=True,
        size_bytes=len(data),
        expires_at=entry.expires_at,
        expires_in_seconds=lives,
        etag=etag,
    )


def _hold(session: Session, key: str, *, shared: bool) -> PutFacts:
    """Lock what the put changes, and read all that it needs: on SQLite the transaction itself is the lock."""
    whose = {"session": None if shared else session, "workspace": session.workspace}
    if connection.vendor == "postgresql":
        list(ToolSpace.objects.select_for_update().filter(**whose).values_list("pk"))
        invalidation.hold_epoch(session.workspace)
        list(ToolKey.objects.select_for_update().filter(workspace=session.workspace, key=key).values_list("pk"))
    facts = find_for_put(session_id=session.pk, key=key, shared=shared)
    if facts is not None and facts.space_id is None:
        ToolSpace.objects.bulk_create([ToolSpace(**whose)], ignore_conflicts=True)
        list(ToolSpace.objects.select_for_update().filter(**whose).values_list("pk"))
        facts = find_for_put(session_id=session.pk, key=key, shared=shared)
    if facts is None:
        raise errors.Conflict("The session was removed meanwhile.")
    return facts


def capacity_of(*, shared: bool) -> int:
    """Return how many bytes a space may take unless it says so itself."""
    return int(settings.TOOL_CACHE_SHARED_BYTES if shared else settings.TOOL_CACHE_SESSION_BYTES)


def _check_lease(session: Session, call: ToolCall, key: str, given: ToolValue, facts: PutFacts) -> None:
    if not given.lease_token:
        return
    if facts.lease_token != given.lease_token:
        raise _Refused(Refusal.STALE_LEASE)
    if facts.epoch == facts.lease_generation:
        return
    changes = list_changes_after(session.workspace, facts.lease_generation or 0)
    subject = Subject(session.sid, call.tool, call.params_hash, key, given.depends_on, facts.head_event or "")
    now = clock.now()
    verdict = judge("manual", Snapshot(now, subject=subject), Evidence(now, changes=changes))
    if verdict.state is State.INVALIDATED:
        raise _Refused(Refusal.STALE_LEASE)


def _take_off_old(session: Session, call: ToolCall, given: ToolValue, etag: str, facts: PutFacts) -> None:
    """Subtract the old value before the new one is added; the row itself is overwritten."""
    facts.used_bytes -= facts.old_size or 0
    facts.entry_count -= 1
    if given.verifies:
        usage.note_verification(
            workspace_id=session.workspace_id, session_id=session.pk, tool=call.tool, stale=facts.old_etag != etag
        )


def _make_room(workspace_id: int, facts: PutFacts, size_bytes: int, capacity: int) -> None:
    """Evict by priority until the entry fits; the last priority evicted is the floor of those that come after."""
    missing = facts.used_bytes + size_bytes - capacity
    if missing <= 0:
        return
    victims: list[Doomed] = []
    candidates = ToolResult.objects.filter(space_id=facts.space_id).exclude(pk=facts.old_id or 0).first_to_evict()
    rows = candidates.values_list("pk", "space_id", "key", "size_bytes", "priority")[:EVICT_AT_MOST]
    for pk, space_id, key, victim_bytes, priority in rows.iterator(chunk_size=100):
        victims.append(Doomed(pk, space_id, key, victim_bytes))
        facts.floor = priority if settings.TOOL_CACHE_EVICTION != "lru" else facts.floor
        missing -= victim_bytes
        if missing <= 0:
            break
    if missing > 0:
        raise _Refused(Refusal.TOO_LARGE)
    remove_entries(workspace_id=workspace_id, entries=victims, gone=ToolKey.Gone.EVICTED)
    facts.used_bytes -= sum(victim.size_bytes for victim in victims)
    facts.entry_count -= len(victims)
    facts.evicted_count += len(victims)


def _entry(
    session: Session,
    call: ToolCall,
    policy: ToolPolicy,
    key: str,
    data: bytes,
    given: ToolValue,
    decision: Decision,
    facts: PutFacts,
    etag: str,
) -> ToolResult:
    now = clock.now()
    ttl = decision.ttl_seconds
    expires_at = None if ttl is None else expiry(now, ttl, jitter=policy.ttl_jitter, key=key)
    grace = timedelta(seconds=policy.stale_while_revalidate_seconds)
    cost = given.cost_ms if given.cost_ms is not None else policy.average_cost_ms
    worth = Facts(0, cost if cost is not None else DEFAULT_COST_MS, len(data), now.timestamp())
    shown = redacted(call.params, policy.redact_params)
    depends_on = [dependency.as_dict() for dependency in given.depends_on]
    return ToolResult(
        workspace_id=session.workspace_id,
        space_id=facts.space_id or 0,
        session_id=session.pk,
        key=key,
        tool=call.tool,
        tool_version=call.tool_version,
        root=call.root,
        env=redacted(dict(call.env)),
        params=call.params_json if shown == call.params else canonical_json(shown),
        params_hash=call.params_hash,
        value=data,
        etag=etag,
        size_bytes=len(data),
        cost_ms=cost,
        is_error=given.is_error,
        depends_on=json.dumps(depends_on, ensure_ascii=False, separators=(",", ":")),
        strategy=policy.strategy,
        generation=facts.lease_generation or 0 if given.lease_token else facts.epoch,  # when it began to be computed
        stored_at=now,
        expires_at=expires_at,
        usable_until=None if expires_at is None else expires_at + grace,
        priority=POLICIES[settings.TOOL_CACHE_EVICTION](worth, facts.floor),
        hit_count=0,
        last_hit_at=None,
        seen_branch_id=facts.head_branch_id,
        seen_seq=facts.head_seq or 0,
        source_event=facts.head_event or "",
    )


_ENTRY_FIELDS = [field for field in ToolResult._meta.concrete_fields if not field.primary_key]
_UPSERT = (  # noqa: S608 - names of our own columns only
    "INSERT INTO session_cache_toolresult ({}) VALUES ({}) "
    "ON CONFLICT (workspace_id, key) DO UPDATE SET {} RETURNING id"
).format(
    ", ".join(field.column for field in _ENTRY_FIELDS),
    ", ".join(["%s"] * len(_ENTRY_FIELDS)),
    ", ".join(f"{f.column} = excluded.{f.column}" for f in _ENTRY_FIELDS if f.column not in ("workspace_id", "key")),
)
_SUMS = (
    "UPDATE session_cache_toolspace SET used_bytes = %s, entry_count = %s, floor = %s, evicted_count = %s WHERE id = %s"
)
_FORGET_GONE = "UPDATE session_cache_toolkey SET gone = '' WHERE workspace_id = %s AND key = %s"
_END_LEASE = (
    "UPDATE session_cache_toolkey SET gone = '', lease_token = '', lease_expires_at = NULL"
    " WHERE workspace_id = %s AND key = %s"
)


def _write(entry: ToolResult, given: ToolValue, facts: PutFacts) -> None:
    """Write the entry over the old one, its dependencies, the space's sums and the key's state."""
    hub_database = connections["default"]  # resolved once: each look through the proxy costs as much as a small read
    values = [field.get_db_prep_save(getattr(entry, field.attname), hub_database) for field in _ENTRY_FIELDS]
    with hub_database.cursor() as cursor:
        cursor.execute(_UPSERT, values)
        result_id = cursor.fetchone()[0]
        if facts.old_depends_on not in (None, "[]"):
            cursor.execute("DELETE FROM session_cache_tooldependency WHERE result_id = %s", [result_id])
        used, count = facts.used_bytes + entry.size_bytes, facts.entry_count + 1
        cursor.execute(_SUMS, [used, count, facts.floor, facts.evicted_count, facts.space_id])
        if given.lease_token or facts.gone:
            cursor.execute(_END_LEASE if given.lease_token else _FORGET_GONE, [entry.workspace_id, entry.key])
    if given.depends_on:
        insert_rows(
            ToolDependency,
            ("result_id", "workspace_id", "kind", "name"),
            ((result_id, entry.workspace_id, dependency.kind, dependency.name) for dependency in given.depends_on),
        )


def remove_tool_result(*, entry: ToolResult) -> None:
    """Remove one entry by hand."""
    with write_transaction():
        remove_entries(
            workspace_id=entry.workspace_id,
            entries=[Doomed(entry.pk, entry.space_id, entry.key, entry.size_bytes)],
            gone=ToolKey.Gone.INVALIDATED,
        )


def sweep_expired(*, limit: int = 5000) -> int:
    """Remove entries that no look-up may serve any more because of their time, some thousands at the most."""
    now = clock.now()
    rows = (
        ToolResult.objects.expired(now)
        .order_by("usable_until")
        .values_list("workspace_id", "pk", "space_id", "key", "size_bytes")[:limit]
    )
    by_workspace: dict[int, list[Doomed]] = {}
    for workspace_id, pk, space_id, key, size_bytes in rows:
        by_workspace.setdefault(workspace_id, []).append(Doomed(pk, space_id, key, size_bytes))
    removed = 0
    for workspace_id, entries in by_workspace.items():
        for start in range(0, len(entries), 500):  # a writer waits for one small transaction at the most
            with write_transaction():
                batch: Sequence[Doomed] = entries[start : start + 500]
                removed += remove_entries(workspace_id=workspace_id, entries=batch, gone=ToolKey.Gone.EXPIRED)
    return removed
