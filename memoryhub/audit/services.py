"""Writes to the log."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from django.db import IntegrityError, transaction

from memoryhub.audit.models import AuditEvent, ChangeSet, IdempotentReply
from memoryhub.common import clock, errors, ids
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

REPLAY_SECONDS = 24 * 3600
IN_FLIGHT_SECONDS = 60  # after this a request that never answered (a killed process) may be tried again


class StillInFlight(errors.Conflict):
    slug = "idempotency-in-flight"
    title = "The first request with this Idempotency-Key is still being worked on"


class KeyReused(errors.Invalid):
    slug = "idempotency-key-reused"
    title = "This Idempotency-Key was used with another request"


class Listener(Protocol):
    """Hears of each line of the log in its transaction: a change set, or an event that belongs to none."""

    def __call__(
        self,
        *,
        workspace: Workspace,
        action: str,
        change_set: ChangeSet | None = None,
        audit_event: AuditEvent | None = None,
    ) -> None: ...


_listeners: list[Listener] = []


def install_listener(listener: Listener) -> None:
    """Tell who hears of the log (a floor above does, at start-up)."""
    _listeners[:] = [listener]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is remembered and replayed."""

    status: int
    content_type: str
    body: bytes


def open_change_set(
    *,
    workspace: Workspace,
    actor: Actor,
    action: str,
    reason: str = "",
    door: str = "",
    subject_count: int = 0,
    reverts: ChangeSet | None = None,
) -> ChangeSet:
    """Open the change set that the rows of one write will name; call it inside the write's transaction."""
    change_set = ChangeSet.objects.create(
        workspace=workspace,
        public_id=ids.new_id("chg"),
        action=action[:64],
        reason=reason[:500],
        door=door,
        subject_count=subject_count,
        reverts=reverts,
        actor_kind=actor.kind,
        actor_id=actor.id[:64],
        actor_label=actor.label[:200],
        created_at=clock.now(),
    )
    for hear in _listeners:
        hear(workspace=workspace, action=change_set.action, change_set=change_set)
    return change_set


def record_event(
    *,
    workspace: Workspace,
    actor: Actor,
    action: str,
    subject_type: str,
    subject_id: str = "",
    detail: dict[str, Any] | None = None,
    change_set: ChangeSet | None = None,
) -> AuditEvent:
    """Write one line of the log."""
    event = AuditEvent.objects.create(
        workspace=workspace,
        change_set=change_set,
        action=action[:64],
        subject_type=subject_type,
        subject_id=subject_id[:200],
        detail=detail or {},
        actor_kind=actor.kind,
        actor_id=actor.id[:64],
        actor_label=actor.label[:200],
        created_at=clock.now(),
    )
    if change_set is None:
        for hear in _listeners:
            hear(workspace=workspace, action=event.action, audit_event=event)
    return event


def claim_idempotency_key(
    *, workspace: Workspace, owner: str, key: str, method: str, path: str, body: bytes
) -> Reply | None:
    """Claim the key for this request and return None, or return the answer that it already got.

    The key belongs to its owner (a key or a person). The same key with another request raises KeyReused, while the first one
    is in flight StillInFlight.
    """
    request_sha256 = hashlib.sha256(f"{method} {path}\n".encode() + body).hexdigest()
    now = clock.now()
    with transaction.atomic():
        known = IdempotentReply.objects.select_for_update().filter(workspace=workspace, owner=owner, key=key).first()
        lifetime = REPLAY_SECONDS if known and known.status else IN_FLIGHT_SECONDS
        if known and now - known.created_at > timedelta(seconds=lifetime):
            known.delete()
            known = None
        if known is None:
            _start(workspace, owner, key, request_sha256)
            return None
    if known.request_sha256 != request_sha256:
        raise KeyReused("Use a new Idempotency-Key for a new request.")
    if known.status is None:
        raise StillInFlight("Ask again in a moment.")
    return Reply(known.status, known.content_type, bytes(known.body or b""))


def _start(workspace: Workspace, owner: str, key: str, request_sha256: str) -> None:
    try:
        with transaction.atomic():
            IdempotentReply.objects.create(
                workspace=workspace, owner=owner, key=key, request_sha256=request_sha256, created_at=clock.now()
            )
    except IntegrityError as error:
        raise StillInFlight("Ask again in a moment.") from error


def keep_reply(*, workspace: Workspace, owner: str, key: str, reply: Reply) -> None:
    """Remember the answer for a day."""
    IdempotentReply.objects.filter(workspace=workspace, owner=owner, key=key).update(
        status=reply.status, content_type=reply.content_type, body=reply.body
    )


def release_idempotency_key(*, workspace: Workspace, owner: str, key: str) -> None:
    """Forget a claim whose request failed, so that it can be tried again."""
    IdempotentReply.objects.filter(workspace=workspace, owner=owner, key=key, status=None).delete()


def forget_old_replies() -> int:
    """Remove replies older than a day and return how many."""
    oldest = clock.now() - timedelta(seconds=REPLAY_SECONDS)
    removed, _ = IdempotentReply.objects.filter(created_at__lt=oldest).delete()
    return removed
