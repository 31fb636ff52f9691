"""Looking up a tool result: a hit with its proof, or the reason of the miss. A hit writes nothing."""

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from memoryhub.common import clock, errors
from memoryhub.invalidation.domain.dependency import Dependency, parse_dependencies
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict
from memoryhub.invalidation.queries import list_watched_since
from memoryhub.invalidation.strategies import judge
from memoryhub.session_cache.domain import event_tree
from memoryhub.session_cache.domain.cache_key import canonical_json as canonical
from memoryhub.session_cache.domain.cache_key import redacted
from memoryhub.session_cache.queries import inherited, lookups
from memoryhub.session_cache.queries.lookups import Found, as_json, as_moment
from memoryhub.session_cache.services import file_roots, usage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.leases import LEASE_SECONDS, Lease, release_lease, take_lease
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.services import ensure_session

MAX_WAIT_SECONDS = 25.0  # below the patience of the proxies in front of a hub
_PROOFS = ("hash", "fingerprint")


class BadLookup(errors.Invalid):
    slug = "bad-lookup"
    title = "This look-up breaks a rule"


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """How a look-up wants to be answered."""

    shown: tuple[Dependency, ...] = ()
    max_age_seconds: float | None = None
    wait_seconds: float = 0.0
    wants_lease: bool = False
    lease_seconds: float = LEASE_SECONDS
    lease_token: str = ""
    front_hits: int = 0  # answered by the caller's own cache since its last look-up

    def __post_init__(self) -> None:
        if self.max_age_seconds is not None and self.max_age_seconds < 0:
            raise BadLookup("max_age_seconds is not negative.")
        if self.wait_seconds < 0 or self.lease_seconds <= 0:
            raise BadLookup("wait_seconds is not negative, lease_seconds above 0.")


@dataclass(frozen=True, slots=True)
class Answer:
    """hit, miss, wait or validate; `value` is the stored JSON, as bytes."""

    state: str
    key: str = ""
    value: bytes = b""
    reason: str = ""
    lease: Lease | None = None
    retry_after_seconds: float = 0.0
    because: str = ""  # of a miss or a wish for proof: unknown_write
    changed_by: str = ""  # the tool that may have changed it
    depends_on: Sequence[Mapping[str, Any]] = ()
    age_seconds: float = 0.0
    hit_count: int = 0
    etag: str = ""
    expires_in_seconds: float | None = None
    is_error: bool = False
    revalidate: bool = False
    verify: bool = False
    proof: Mapping[str, Any] = field(default_factory=dict)


def look_up(*, workspace: Workspace, call: ToolCall, options: LookupOptions, may_write: bool = True) -> Answer:
    """Answer a look-up; its session exists from then on, if the caller may write.

    With `wait_seconds` it waits for whoever computes the value, as long as that lease lives.
    """
    deadline = time.monotonic() + min(options.wait_seconds, MAX_WAIT_SECONDS)
    pause = 0.01
    while True:
        answer = _look_once(workspace, call, options, may_write)
        options = replace(options, front_hits=0)  # counted once, however long this waits
        left = deadline - time.monotonic()
        if answer.state != "wait" or left <= 0:
            return answer
        _rest(min(pause, left))
        pause = min(pause * 1.5, 0.25)


def _rest(seconds: float) -> None:
    """Wait without holding a connection that another request could use."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()
    time.sleep(seconds)


def _look_once(workspace: Workspace, call: ToolCall, options: LookupOptions, may_write: bool) -> Answer:
    started = time.perf_counter()
    found = _find(workspace, call, may_write)
    names = as_json(found.normalize_params) if found else None
    if names:
        call = call.with_normal_text(names)
        found = _find(workspace, call, may_write)
    if found is None:
        return Answer("miss", call.session_key, reason="absent")
    if options.front_hits:
        usage.note_front_hits(
            workspace_id=workspace.pk,
            session_id=found.session_id,
            tool=call.tool,
            count=options.front_hits,
            saved_ms=options.front_hits * (found.average_cost_ms or 0.0),
        )
    key = call.key_for(found.scope)
    if not found.cacheable:
        return _miss(workspace, found, call, "uncacheable", key, started)
    answer = _judge(workspace, found, call, options, key, started)
    if answer is None and found.origin_branch_id is not None and found.scope != "workspace":
        answer = _inherited(workspace, found, call, options, started)
    if answer is not None and not (answer.revalidate and options.wants_lease):
        return answer
    return _miss_or_wait(workspace, found, call, options, key, answer, started)


def _find(workspace: Workspace, call: ToolCall, may_write: bool) -> Found | None:
    where: dict[str, Any] = {
        "workspace_id": workspace.pk,
        "sid": call.sid,
        "tool": call.tool,
        "shared_key": call.shared_key,
        "session_key": call.session_key,
    }
    found = lookups.find(**where)
    if found is None and may_write:
        ensure_session(workspace=workspace, sid=call.sid)
        found = lookups.find(**where)
    return found


def _judge(
    workspace: Workspace, found: Found, call: ToolCall, options: LookupOptions, key: str, started: float
) -> Answer | None:
    """Return the entry as a hit or a wish for proof, or None where there is none that may be served."""
    if found.result_id is None or not _same_params(found, call):
        return None
    verdict, dependencies, now = _verdict(found, call, options)
    if verdict.state is State.UNPROVEN:
        wanted = [dependency.as_dict() for dependency in dependencies]
        return Answer("validate", key, depends_on=wanted, **_because(verdict, found))
    if not verdict.is_fresh or not _may_serve_here(found, verdict):
        return None
    return _hit(workspace, found, call, verdict, dependencies, now, key, started)


def _same_params(found: Found, call: ToolCall) -> bool:
    """Compare the parameters themselves, not only their hash; stored ones may have their secrets hidden."""
    if found.params == call.params_json:
        return True
    return (found.params is not None and "[redacted]" in found.params) or found.params == canonical(
        redacted(call.params)
    )


def _because(verdict: Verdict, found: Found) -> dict[str, Any]:
    """Return what an answer says about who may have changed things; nothing in most cases."""
    return {"because": verdict.because, "changed_by": found.doubt_tool or ""} if verdict.because else {}


def _verdict(found: Found, call: ToolCall, options: LookupOptions) -> tuple[Verdict, tuple[Dependency, ...], datetime]:
    now = clock.now()
    stored = found.depends_on or "[]"
    dependencies = parse_dependencies(json.loads(stored)) if stored != "[]" else ()
    shown = {dependency.identity: dependency for dependency in options.shown}
    if dependencies:
        unseen = [dependency for dependency in dependencies if dependency.identity not in shown]
        shown |= file_roots.look_at(unseen)
    snapshot = Snapshot(
        stored_at=as_moment(found.stored_at) or now,
        expires_at=as_moment(found.expires_at),
        usable_until=as_moment(found.usable_until),
        dependencies=dependencies,
        is_rooted=bool(call.root),
    )
    watched = list_watched_since(now) if settings.FILE_ROOTS and any(d.is_path for d in dependencies) else {}
    max_age = None if options.max_age_seconds is None else timedelta(seconds=options.max_age_seconds)
    return (
        judge(
            found.strategy or "hybrid",
            snapshot,
            Evidence(now, shown, watched, max_age=max_age, unknown_write=found.is_in_doubt),
        ),
        dependencies,
        now,
    )


def _may_serve_here(found: Found, verdict: Verdict) -> bool:
    """After a rewind, a result of the abandoned future counts only where a fingerprint proves it now."""
    if found.scope == "workspace" or found.seen_branch_id is None or verdict.verified_by in _PROOFS:
        return True
    return event_tree.sees(found.head_full_path, found.seen_branch_id, found.seen_seq or 0)


def _hit(
    workspace: Workspace,
    found: Found,
    call: ToolCall,
    verdict: Verdict,
    dependencies: Sequence[Dependency],
    now: datetime,
    key: str,
    started: float,
) -> Answer:
    stored_at = as_moment(found.stored_at) or now
    age = max(0.0, (now - stored_at).total_seconds())
    cost = found.cost_ms if found.cost_ms is not None else found.average_cost_ms
    pending = usage.note_hit(
        workspace_id=workspace.pk,
        session_id=found.session_id,
        tool=call.tool,
        result_id=found.result_id or 0,
        saved_ms=cost or 0.0,
        lookup_ms=(time.perf_counter() - started) * 1000,
    )
    return Answer(
        "hit",
        key,
        bytes(found.value or b""),
        age_seconds=age,
        hit_count=(found.hit_count or 0) + pending,
        etag=found.etag or "",
        expires_in_seconds=_seconds_left(found, now),
        is_error=bool(found.is_error),
        revalidate=verdict.revalidate,
        verify=bool(found.verify_share) and random.random() < (found.verify_share or 0),  # noqa: S311 - a sample
        proof={
            "stored_at": stored_at,
            "age_seconds": round(age, 3),
            "verified_by": verdict.verified_by,
            "strategy": verdict.strategy,
            "validators": [dependency.as_dict() for dependency in dependencies],
            "source_event": found.source_event or None,
            "generation": found.generation,
        },
    )


def _seconds_left(found: Found, now: datetime) -> float | None:
    expires_at = as_moment(found.expires_at)
    return None if expires_at is None else round(max(0.0, (expires_at - now).total_seconds()), 3)


def _inherited(
    workspace: Workspace, found: Found, call: ToolCall, options: LookupOptions, started: float
) -> Answer | None:
    """Try what the session that this one was forked from had seen before the fork."""
    for sid in inherited.list_ancestor_sids(found.session_id):
        theirs = ToolCall(sid, call.tool, call.params, call.tool_version, call.root, call.env)
        row = lookups.find(
            workspace_id=workspace.pk,
            sid=call.sid,
            tool=call.tool,
            shared_key=call.shared_key,
            session_key=theirs.session_key,
        )
        if row is None or row.result_id is None or not _was_seen(row):
            continue
        answer = _judge(workspace, row, call, options, theirs.session_key, started)
        if answer is not None:
            return answer
    return None


def _was_seen(row: Found) -> bool:
    return row.seen_branch_id is not None and event_tree.sees(row.head_full_path, row.seen_branch_id, row.seen_seq or 0)


def _miss(workspace: Workspace, found: Found, call: ToolCall, reason: str, key: str, started: float) -> Answer:
    usage.note_miss(
        workspace_id=workspace.pk,
        session_id=found.session_id,
        tool=call.tool,
        reason=reason,
        lookup_ms=(time.perf_counter() - started) * 1000,
    )
    return Answer("miss", key, reason=reason)


def _miss_or_wait(
    workspace: Workspace,
    found: Found,
    call: ToolCall,
    options: LookupOptions,
    key: str,
    stale_hit: Answer | None,
    started: float,
) -> Answer:
    """Give the lease to this caller, or say when to come back; an entry past its time is served to those who wait."""
    lease: Lease | None = None
    if options.wants_lease:
        taken = take_lease(workspace_id=workspace.pk, key=key, seconds=options.lease_seconds, token=options.lease_token)
        if isinstance(taken, datetime):
            return stale_hit or _wait_until(taken)
        lease = taken
        if lease.token == options.lease_token:  # renewed by its holder, who has been counted before
            return replace(_why(found, call, options, key), lease=lease)
        arrived = _arrived_meanwhile(workspace, found, call, options, key, started)
        if arrived is not None:
            release_lease(workspace_id=workspace.pk, key=key, token=lease.token)
            return arrived
    elif options.wait_seconds and found.lease_token:
        until = as_moment(found.lease_expires_at)
        if until is not None and until > clock.now():
            return _wait_until(until)
    answer = _why(found, call, options, key)
    _miss(workspace, found, call, answer.reason, key, started)
    return answer if lease is None else replace(answer, lease=lease)


def _arrived_meanwhile(
    workspace: Workspace, found: Found, call: ToolCall, options: LookupOptions, key: str, started: float
) -> Answer | None:
    """Look again under the lease: the holder before may have stored its value just after this look-up had missed it."""
    again = _find(workspace, call, may_write=False)
    if again is None or again.result_id is None or (again.result_id == found.result_id):
        return None
    return _judge(workspace, again, call, options, key, started)


def _wait_until(until: datetime) -> Answer:
    left = (until - clock.now()).total_seconds()
    return Answer("wait", retry_after_seconds=round(min(max(left, 0.05), 1.0), 3))


def _why(found: Found, call: ToolCall, options: LookupOptions, key: str) -> Answer:
    """Return the miss with its reason."""
    if found.result_id is None:
        return Answer("miss", key, reason=found.gone or "absent")
    verdict, _, _ = _verdict(found, call, options)
    if verdict.state in (State.EXPIRED, State.STALE, State.INVALIDATED):
        return Answer("miss", key, reason=verdict.state.value, **_because(verdict, found))
    return Answer("miss", key, reason="expired" if verdict.revalidate else "stale")
