"""Shapes of tool results, tool policies and invalidations."""

import json
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from memoryhub.api.schemas.base import InShape, UtcTime, as_utc_text
from memoryhub.invalidation.models import InvalidationRecord
from memoryhub.session_cache.models import ToolPolicy, ToolResult
from memoryhub.session_cache.services.calls import ToolCall, parse_given
from memoryhub.session_cache.services.look_up import Answer, LookupOptions
from memoryhub.session_cache.services.policies import PolicyChoice
from memoryhub.session_cache.services.store import Stored, ToolValue

Name = Annotated[str, Field(min_length=1, max_length=200)]
MAX_FACTS = 1000  # of files, urls and versions that one call names
Facts = Annotated[list[dict[str, Any]], Field(max_length=MAX_FACTS)]
Seconds = Annotated[float, Field(allow_inf_nan=False)]


class CallIn(InShape):
    """What makes two calls the same: tool and parameters, and where given its version, root folder and environment."""

    tool: Name
    params: Any = None
    tool_version: Annotated[str, Field(max_length=200)] | None = None
    root: Annotated[str, Field(max_length=500)] | None = None
    env: dict[str, Any] | None = None

    def call(self, sid: str) -> ToolCall:
        return ToolCall(
            sid=sid,
            tool=self.tool,
            params=self.params,
            tool_version=self.tool_version or "",
            root=self.root or "",
            env=self.env or {},
        )


class LookupIn(CallIn):
    fingerprints: Facts | None = Field(None, description="What you see of the files, folders, urls and versions now.")
    max_age_seconds: Seconds | None = None
    wait_seconds: Seconds | None = Field(None, description="Wait this long for whoever computes it; 25 at the most.")
    lease: bool = Field(False, description="Ask for the right to compute it, if it is missing.")
    lease_seconds: Seconds | None = Field(None, description="How long the lease shall live; 60 if left out.")
    lease_token: Annotated[str, Field(max_length=64)] | None = Field(None, description="Renews this lease.")

    front_hits: Annotated[int, Field(ge=0, le=10**9)] | None = Field(
        None, description="Hits of this tool that your own cache has answered since the last look-up."
    )

    def options(self) -> LookupOptions:
        given = {"lease_seconds": self.lease_seconds} if self.lease_seconds is not None else {}
        return LookupOptions(
            shown=parse_given(self.fingerprints),
            max_age_seconds=self.max_age_seconds,
            wait_seconds=self.wait_seconds or 0.0,
            wants_lease=self.lease or bool(self.lease_token),
            lease_token=self.lease_token or "",
            front_hits=self.front_hits or 0,
            **given,
        )


class LeaseOut(Schema):
    token: str
    expires_at: UtcTime


class ProofOut(Schema):
    stored_at: UtcTime
    age_seconds: float
    verified_by: str = Field(description="hash, fingerprint, event or ttl.")
    strategy: str
    validators: list[dict[str, Any]]
    source_event: str | None
    generation: int


class LookupOut(Schema):
    """`state` says which of the other fields are there: hit, miss, wait or validate."""

    state: Literal["hit", "miss", "wait", "validate"]
    key: str | None = None
    value: Any = None
    age_seconds: float | None = None
    hit_count: int | None = None
    etag: str | None = None
    expires_in_seconds: float | None = Field(None, description="None: until it is invalidated or evicted.")
    error: bool | None = Field(None, description="The value is an error that the policy keeps for some seconds.")
    stale: bool | None = Field(None, description="Past its time; somebody computes it anew.")
    verify: bool | None = Field(None, description="Run the tool all the same and put its value with `verifies`.")
    proof: ProofOut | None = None
    reason: str | None = Field(None, description="absent, expired, stale, invalidated, evicted or uncacheable.")
    because: str | None = Field(
        None, description="unknown_write: since it was stored, a tool ran that may have changed any file."
    )
    changed_by: str | None = Field(None, description="That tool.")
    lease: LeaseOut | None = None
    retry_after_seconds: float | None = None
    depends_on: list[dict[str, Any]] | None = None


def render_answer(answer: Answer) -> bytes:
    """Return the answer's body. A hit's value is passed on as it is stored, without being decoded."""
    if answer.state == "hit":
        return b'{"state":"hit","value":' + answer.value + b"," + _dumped(_hit_facts(answer))[1:]
    if answer.state == "miss":
        lease = answer.lease
        shaped = lease and {"token": lease.token, "expires_at": as_utc_text(lease.expires_at)}
        return _dumped({"state": "miss", "reason": answer.reason, **_doubt(answer), "key": answer.key, "lease": shaped})
    if answer.state == "wait":
        return _dumped({"state": "wait", "retry_after_seconds": answer.retry_after_seconds})
    wanted = {"state": "validate", "key": answer.key, "depends_on": list(answer.depends_on)}
    return _dumped({**wanted, **_doubt(answer)})


def _doubt(answer: Answer) -> dict[str, Any]:
    return {"because": answer.because, "changed_by": answer.changed_by} if answer.because else {}


def _hit_facts(answer: Answer) -> dict[str, Any]:
    flags = {"error": answer.is_error, "stale": answer.revalidate, "verify": answer.verify}
    return {
        "key": answer.key,
        "age_seconds": round(answer.age_seconds, 3),
        "hit_count": answer.hit_count,
        "etag": answer.etag,
        "expires_in_seconds": answer.expires_in_seconds,
        **{name: True for name, is_set in flags.items() if is_set},
        "proof": {**answer.proof, "stored_at": as_utc_text(answer.proof["stored_at"])},
    }


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class PutIn(CallIn):
    value: Any = None
    ttl_seconds: Seconds | None = Field(None, description="0 is not stored; left out, the policy's, else 600.")
    depends_on: Facts | None = None
    cost_ms: Seconds | None = Field(None, description="How long the tool took.")
    lease_token: Annotated[str, Field(max_length=64)] | None = None
    error: Any = Field(None, description="Truthy: the tool failed; kept only where the policy has error_ttl_seconds.")
    verifies: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="The etag of a hit that was re-run."
    )

    def given(self) -> ToolValue:
        return ToolValue(
            value=self.value,
            ttl_seconds=self.ttl_seconds,
            depends_on=parse_given(self.depends_on),
            cost_ms=self.cost_ms,
            lease_token=self.lease_token or "",
            is_error=bool(self.error),
            verifies=self.verifies or "",
        )


class StoredOut(Schema):
    key: str
    stored: Literal[True] = True
    size_bytes: int
    expires_at: UtcTime | None
    expires_in_seconds: float | None
    etag: str
    invalidated: int = Field(0, description="What this tool's run made invalid, as its policy declares.")


class NotStoredOut(Schema):
    key: str
    stored: Literal[False] = False
    reason: str = Field(description="too_large, uncacheable, never_cache, ttl_zero, error or stale_lease.")
    invalidated: int = 0


def render_stored(done: Stored, invalidated: int) -> bytes:
    """Return the body of a put's answer: StoredOut or NotStoredOut."""
    if not done.stored:
        return _dumped({"key": done.key, "stored": False, "reason": done.reason, "invalidated": invalidated})
    return _dumped(
        {
            "key": done.key,
            "stored": True,
            "size_bytes": done.size_bytes,
            "expires_at": done.expires_at and as_utc_text(done.expires_at),
            "expires_in_seconds": done.expires_in_seconds,
            "etag": done.etag,
            "invalidated": invalidated,
        }
    )


class ToolResultOut(Schema):
    """An entry without its value."""

    key: str
    session: str
    tool: str
    tool_version: str | None
    params: Any = Field(description="What sounds like a secret is hidden.")
    depends_on: list[dict[str, Any]]
    strategy: str
    size_bytes: int
    hit_count: int
    cost_ms: float | None
    error: bool
    etag: str
    generation: int
    source_event: str | None
    stored_at: UtcTime
    expires_at: UtcTime | None
    last_hit_at: UtcTime | None

    @staticmethod
    def of(entry: ToolResult) -> "ToolResultOut":
        return ToolResultOut(
            key=entry.key,
            session=entry.session.sid,
            tool=entry.tool,
            tool_version=entry.tool_version or None,
            params=json.loads(entry.params),
            depends_on=json.loads(entry.depends_on),
            strategy=entry.strategy,
            size_bytes=entry.size_bytes,
            hit_count=entry.hit_count,
            cost_ms=entry.cost_ms,
            error=entry.is_error,
            etag=entry.etag,
            generation=entry.generation,
            source_event=entry.source_event or None,
            stored_at=entry.stored_at,
            expires_at=entry.expires_at,
            last_hit_at=entry.last_hit_at,
        )


class ToolResultPage(Schema):
    items: list[ToolResultOut]
    next_cursor: str | None


class ToolStats(Schema):
    tool: str
    hits: int
    misses: int
    misses_by_reason: dict[str, int]
    hit_rate: float | None
    refused: int
    entries: int
    bytes: int
    saved_ms: float
    lookup_ms: float = Field(description="What the hub itself spent on the look-ups.")
    verified: int
    stale_rate: float | None = Field(description="Of the hits that were run again: how many had been wrong.")


class StatsOut(Schema):
    hits: int
    misses: int
    evictions: int
    entries: int
    bytes: int
    capacity_bytes: int
    saved_ms: float
    by_tool: list[ToolStats]


class PolicyIn(InShape):
    """What may be done with a tool's results. Nothing is cached unless `cacheable`, or MCP's `readOnlyHint`, says so."""

    cacheable: bool | None = None
    ttl_seconds: Seconds | None = None
    strategy: Annotated[str, Field(max_length=16)] = "hybrid"
    scope: Literal["session", "workspace"] | None = None
    invalidates: list[Name] = Field(default_factory=list)
    may_change_anything: bool | None = Field(
        None, description="A run may change more than `invalidates` names: results must prove their files after it."
    )
    ignore_unknown_writes: bool = Field(
        False, description="This tool's results stand, although a tool ran that may have changed any file."
    )
    error_ttl_seconds: Seconds = 0
    stale_while_revalidate_seconds: Seconds = 0
    ttl_jitter: Seconds = 0
    verify_share: Seconds = Field(0, description="This share of hits asks to be run again and compared.")
    redact_params: list[Name] = Field(default_factory=list)
    normalize_params: list[Name] = Field(default_factory=list, description="Parameters whose text is made NFC.")
    readOnlyHint: bool | None = Field(None, description="As an MCP server declares it.")  # noqa: N815
    ttlMs: Seconds | None = Field(None, description="As an MCP server declares it.")  # noqa: N815
    cacheScope: Literal["public", "private", "session", "workspace"] | None = None  # noqa: N815

    def choice(self) -> PolicyChoice:
        """Return the policy; our own fields win over MCP's hints."""
        ttl = self.ttl_seconds if self.ttl_seconds is not None or self.ttlMs is None else self.ttlMs / 1000
        anything = self.may_change_anything
        if anything is None:  # MCP: not read-only, and nobody says what it changes
            anything = self.readOnlyHint is False and not self.cacheable and not self.invalidates
        hinted = {"public": "workspace", "private": "session"}.get(self.cacheScope or "", self.cacheScope)
        return PolicyChoice(
            cacheable=bool(self.readOnlyHint) if self.cacheable is None else self.cacheable,
            ttl_seconds=ttl,
            strategy=self.strategy,
            scope=self.scope or hinted or "session",
            invalidates=tuple(self.invalidates),
            may_change_anything=anything,
            ignore_unknown_writes=self.ignore_unknown_writes,
            error_ttl_seconds=self.error_ttl_seconds,
            stale_while_revalidate_seconds=self.stale_while_revalidate_seconds,
            ttl_jitter=self.ttl_jitter,
            verify_share=self.verify_share,
            redact_params=tuple(self.redact_params),
            normalize_params=tuple(self.normalize_params),
        )


class PolicyOut(Schema):
    tool: str
    cacheable: bool
    ttl_seconds: float | None
    strategy: str
    scope: str
    invalidates: list[str]
    may_change_anything: bool
    ignore_unknown_writes: bool
    error_ttl_seconds: float
    stale_while_revalidate_seconds: float
    ttl_jitter: float
    verify_share: float
    redact_params: list[str]
    normalize_params: list[str]
    average_cost_ms: float | None
    updated_at: UtcTime

    @staticmethod
    def of(policy: ToolPolicy) -> "PolicyOut":
        return PolicyOut.from_orm(policy)


class PolicyPage(Schema):
    items: list[PolicyOut]
    next_cursor: str | None


class InvalidationIn(InShape):
    """At least one selector; all that are given must match. `tool` is exact unless it holds * ? or [."""

    session: Annotated[str, Field(max_length=200)] | None = None
    tool: Annotated[str, Field(max_length=200)] | None = None
    params: Any = None
    key: Annotated[str, Field(max_length=64)] | None = None
    tag: Annotated[str, Field(max_length=2000)] | None = None
    path: Annotated[str, Field(max_length=2000)] | None = None
    event: Annotated[str, Field(max_length=200)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    dry_run: bool = False


class InvalidationOut(Schema):
    id: str | None = Field(description="Of the log line; none for a dry run.")
    matched: int
    invalidated: int
    epoch: int | None = None


class InvalidationLogOut(Schema):
    id: str
    epoch: int
    selector: dict[str, Any]
    strategy: str
    reason: str
    matched: int
    invalidated: int
    by: str
    by_kind: str
    door: str
    created_at: UtcTime

    @staticmethod
    def of(record: InvalidationRecord) -> "InvalidationLogOut":
        return InvalidationLogOut(
            id=record.public_id,
            epoch=record.epoch,
            selector=record.selector,
            strategy=record.strategy,
            reason=record.reason,
            matched=record.matched,
            invalidated=record.invalidated,
            by=record.actor_label,
            by_kind=record.actor_kind,
            door=record.door,
            created_at=record.created_at,
        )


class InvalidationPage(Schema):
    items: list[InvalidationLogOut]
    next_cursor: str | None
