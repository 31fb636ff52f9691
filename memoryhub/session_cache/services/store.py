"""Storing a tool result, or saying in one word why not."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

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
from memoryhub.session_cache.queries import tree as tree_queries
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.entries import Doomed, doomed, remove_entries
from memoryhub.session_cache.services.leases import release_lease
from memoryhub.session_cache.services.policies import check_seconds
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


class _Refused(Exception):
    """Leaves the transaction's steps with a reason; what was done before it stays."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


def store_tool_result(*, session: Session, call: ToolCall, given: ToolValue) -> Stored:
    """Store what a tool answered, in one transaction.

    1. The policy decides; a refused put removes the old value, for it is no longer the tool's answer.
    2. The lease is checked against every invalidation since it was given: what was computed before a change is refused.
    3. The old value's size is taken off, room is made by priority, the entry and its dependencies are written.
    """
    workspace = session.workspace
    policy = policy_queries.find_policy(workspace, call.tool)
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
        with transaction.atomic():
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
        with transaction.atomic():
            old = ToolResult.objects.filter(workspace_id=workspace_id, key=key)
            rows = old.values_list("pk", "space_id", "key", "size_bytes")
            remove_entries(workspace_id=workspace_id, entries=doomed(rows), gone="")
    if given.lease_token:
        release_lease(workspace_id=workspace_id, key=key, token=given.lease_token)
    return Stored(key, stored=False, reason=refusal.value)


def _store(session: Session, call: ToolCall, policy: ToolPolicy, key: str, data: bytes, given: ToolValue) -> Stored:
    workspace = session.workspace
    space = _lock_space(session, shared=policy.scope == ToolPolicy.Scope.WORKSPACE)
    capacity = capacity_of(space)
    rule = policy_queries.rule_of(policy)
    decision = storing.decide(
        rule, ttl_seconds=given.ttl_seconds, is_error=given.is_error, size_bytes=len(data), capacity_bytes=capacity
    )
    if decision.refusal is not None:
        raise _Refused(decision.refusal)
    generation = invalidation.hold_epoch(workspace)
    _check_lease(session, call, key, given)
    etag = hashlib.sha256(data).hexdigest()
    _replace(session, call, key, given, etag, space)
    _make_room(space, len(data), capacity)
    entry = _entry(session, call, policy, key, data, given, decision, space, generation, etag)
    entry.save(force_insert=True)
    ToolDependency.objects.bulk_create(
        ToolDependency(result=entry, workspace=workspace, kind=dependency.kind, name=dependency.name)
        for dependency in given.depends_on
    )
    space.used_bytes += len(data)
    space.entry_count += 1
    space.save(update_fields=["used_bytes", "entry_count", "floor", "evicted_count"])
    state = ToolKey.objects.filter(workspace=workspace, key=key)
    if given.lease_token:
        state.update(gone="", lease_token="", lease_expires_at=None, updated_at=clock.now())
    else:
        state.exclude(gone="").update(gone="", updated_at=clock.now())
    lives = None if entry.expires_at is None else (entry.expires_at - entry.stored_at).total_seconds()
    return Stored(
        key,
        stored=True,
        size_bytes=len(data),
        expires_at=entry.expires_at,
        expires_in_seconds=lives,
        etag=etag,
    )


def _lock_space(session: Session, *, shared: bool) -> ToolSpace:
    whose = {"session": None if shared else session, "workspace": session.workspace}
    found = ToolSpace.objects.select_for_update().filter(**whose).first()
    if found is None:
        ToolSpace.objects.bulk_create([ToolSpace(**whose)], ignore_conflicts=True)
        found = ToolSpace.objects.select_for_update().get(**whose)
    return found


def capacity_of(space: ToolSpace) -> int:
    """Return how many bytes a space may take."""
    if space.capacity_bytes is not None:
        return space.capacity_bytes
    return int(settings.TOOL_CACHE_SHARED_BYTES if space.session_id is None else settings.TOOL_CACHE_SESSION_BYTES)


def _check_lease(session: Session, call: ToolCall, key: str, given: ToolValue) -> None:
    if not given.lease_token:
        return
    state = ToolKey.objects.select_for_update().filter(workspace=session.workspace, key=key).first()
    if state is None or state.lease_token != given.lease_token:
        raise _Refused(Refusal.STALE_LEASE)
    changes = list_changes_after(session.workspace, state.lease_generation)
    if not changes:
        return
    source = tree_queries.head_id(tree_queries.find_tree(session)) or ""
    subject = Subject(session.sid, call.tool, call.params_hash, key, given.depends_on, source)
    now = clock.now()
    verdict = judge("manual", Snapshot(now, subject=subject), Evidence(now, changes=changes))
    if verdict.state is State.INVALIDATED:
        raise _Refused(Refusal.STALE_LEASE)


def _replace(session: Session, call: ToolCall, key: str, given: ToolValue, etag: str, space: ToolSpace) -> None:
    old = ToolResult.objects.filter(workspace=session.workspace, key=key).values_list(
        "pk", "space_id", "key", "size_bytes", "etag"
    )
    for pk, space_id, old_key, size_bytes, old_etag in old:
        if given.verifies:
            usage.note_verification(
                workspace_id=session.workspace_id, session_id=session.pk, tool=call.tool, stale=old_etag != etag
            )
        remove_entries(workspace_id=session.workspace_id, entries=[Doomed(pk, space_id, old_key, size_bytes)], gone="")
        if space_id == space.pk:
            space.used_bytes -= size_bytes
            space.entry_count -= 1


def _make_room(space: ToolSpace, size_bytes: int, capacity: int) -> None:
    """Evict by priority until the entry fits; the last priority evicted is the floor of those that come after."""
    missing = space.used_bytes + size_bytes - capacity
    if missing <= 0:
        return
    victims: list[Doomed] = []
    candidates = space.entries.first_to_evict().values_list("pk", "space_id", "key", "size_bytes", "priority")
    for pk, space_id, key, victim_bytes, priority in candidates[:EVICT_AT_MOST].iterator(chunk_size=100):
        victims.append(Doomed(pk, space_id, key, victim_bytes))
        space.floor = priority if settings.TOOL_CACHE_EVICTION != "lru" else space.floor
        missing -= victim_bytes
        if missing <= 0:
            break
    if missing > 0:
        raise _Refused(Refusal.TOO_LARGE)
    remove_entries(workspace_id=space.workspace_id, entries=victims, gone=ToolKey.Gone.EVICTED)
    space.used_bytes -= sum(victim.size_bytes for victim in victims)
    space.entry_count -= len(victims)
    space.evicted_count += len(victims)


def _entry(
    session: Session,
    call: ToolCall,
    policy: ToolPolicy,
    key: str,
    data: bytes,
    given: ToolValue,
    decision: Decision,
    space: ToolSpace,
    generation: int,
    etag: str,
) -> ToolResult:
    now = clock.now()
    ttl = decision.ttl_seconds
    expires_at = None if ttl is None else expiry(now, ttl, jitter=policy.ttl_jitter, key=key)
    grace = timedelta(seconds=policy.stale_while_revalidate_seconds)
    tree = tree_queries.find_tree(session)
    cost = given.cost_ms if given.cost_ms is not None else policy.average_cost_ms
    facts = Facts(0, cost if cost is not None else DEFAULT_COST_MS, len(data), now.timestamp())
    depends_on = [dependency.as_dict() for dependency in given.depends_on]
    return ToolResult(
        workspace_id=session.workspace_id,
        space=space,
        session=session,
        key=key,
        tool=call.tool,
        tool_version=call.tool_version,
        root=call.root,
        env=redacted(dict(call.env)),
        params=canonical_json(redacted(call.params, policy.redact_params)),
        params_hash=call.params_hash,
        value=data,
        etag=etag,
        size_bytes=len(data),
        cost_ms=cost,
        is_error=given.is_error,
        depends_on=json.dumps(depends_on, ensure_ascii=False, separators=(",", ":")),
        strategy=policy.strategy,
        generation=generation,
        stored_at=now,
        expires_at=expires_at,
        usable_until=None if expires_at is None else expires_at + grace,
        priority=POLICIES[settings.TOOL_CACHE_EVICTION](facts, space.floor),
        seen_branch_id=tree.head_branch_id if tree else None,
        seen_seq=tree.head_seq if tree else 0,
        source_event=(tree_queries.head_id(tree) or "") if tree else "",
    )


def remove_tool_result(*, entry: ToolResult) -> None:
    """Remove one entry by hand."""
    with transaction.atomic():
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
            with transaction.atomic():
                batch: Sequence[Doomed] = entries[start : start + 500]
                removed += remove_entries(workspace_id=workspace_id, entries=batch, gone=ToolKey.Gone.EXPIRED)
    return removed
