"""Single flight: one caller computes, under a lease; the others wait. Nobody waits for the dead.

A lease carries the workspace's epoch at the moment it was given. A value that is stored under it is checked against
every invalidation since: a result that was computed before a change is never stored after it.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from memoryhub.common import clock
from memoryhub.invalidation.queries import get_epoch
from memoryhub.session_cache.models import ToolKey
from memoryhub.session_cache.services.transactions import write_transaction

LEASE_SECONDS = 60.0
MAX_LEASE_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to compute one key's value."""

    token: str
    expires_at: datetime


def take_lease(*, workspace_id: int, key: str, seconds: float = LEASE_SECONDS, token: str = "") -> Lease | datetime:
    """Take the key's lease, or renew it with its token; where another caller holds it, return when theirs runs out."""
    now = clock.now()
    until = now + timedelta(seconds=min(max(seconds, 1.0), MAX_LEASE_SECONDS))
    with write_transaction():
        ToolKey.objects.bulk_create(
            [ToolKey(workspace_id=workspace_id, key=key, updated_at=now)], ignore_conflicts=True
        )
        state = ToolKey.objects.select_for_update().get(workspace_id=workspace_id, key=key)
        held = bool(state.lease_token) and state.lease_expires_at is not None and state.lease_expires_at > now
        if held and state.lease_token == token:
            ToolKey.objects.filter(pk=state.pk).update(lease_expires_at=until, updated_at=now)
            return Lease(token, until)
        if held and state.lease_expires_at is not None:
            return state.lease_expires_at
        fresh = secrets.token_urlsafe(24)
        ToolKey.objects.filter(pk=state.pk).update(
            lease_token=fresh, lease_expires_at=until, lease_generation=get_epoch(workspace_id), updated_at=now
        )
    return Lease(fresh, until)


def release_lease(*, workspace_id: int, key: str, token: str) -> bool:
    """Give a lease back without a value; the next caller may compute."""
    return bool(
        ToolKey.objects.filter(workspace_id=workspace_id, key=key, lease_token=token).update(
            lease_token="", lease_expires_at=None, updated_at=clock.now()
        )
    )
