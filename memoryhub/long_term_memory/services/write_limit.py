"""Refusing a writer that runs wild: a limit of memories a minute, over all processes of the hub.

Each process counts its own writes and adds them to the shared count a hundredth of the limit at a time, so that most
writes touch nothing beside their own rows, and no process runs further ahead than that.
"""

import math
import threading
from dataclasses import dataclass

from memoryhub.common import clock
from memoryhub.long_term_memory.queries.guards import GuardSettings
from memoryhub.long_term_memory.services.writer import TooManyWrites, Writer
from memoryhub.workspaces import tallies

WINDOW_SECONDS = 60
SHARES = 100  # of the limit: so much a process may write before it tells the others
MAX_WRITERS = 10_000  # that are kept in mind at a time


@dataclass
class _Share:
    """What this process knows of one writer's present minute."""

    ends: float = 0.0
    total: int = 0  # of all processes, as far as it is known
    untold: int = 0


_shares: dict[tuple[int, str, str], _Share] = {}
_lock = threading.Lock()


def limit_writes(writer: Writer, count: int, settings: GuardSettings) -> None:
    """Count new memories of a writer, or refuse them where they are too many for this minute."""
    limit = settings.max_writes_per_minute
    if not limit or writer.actor.kind in ("command", "job"):
        return
    now = clock.now().timestamp()
    with _lock:
        share = _share_of(writer, now)
        if share.total + share.untold + count > limit:
            raise _too_many(limit, share.ends - now if share.ends else WINDOW_SECONDS)
        share.untold += count
        if share.ends and share.untold * SHARES < limit:
            return
        told, share.untold = share.untold, 0
    _tell(writer, share, told, count, limit, now)


def _share_of(writer: Writer, now: float) -> _Share:
    """The writer's share, begun anew where its minute is over; call it under the lock."""
    if len(_shares) > MAX_WRITERS:
        _shares.clear()
    share = _shares.setdefault((writer.workspace.pk, writer.actor.kind, writer.actor.id), _Share())
    if not now < share.ends <= now + 2 * WINDOW_SECONDS:
        share.ends, share.total, share.untold = 0.0, 0, 0
    return share


def _tell(writer: Writer, share: _Share, told: int, count: int, limit: int, now: float) -> None:
    """Add to the shared count; where others have filled it meanwhile, take this write back and refuse it."""
    key = f"writes:{writer.workspace.pk}:{writer.actor.kind}:{writer.actor.id}"[:200]
    shared = tallies.add(key, told, window_seconds=WINDOW_SECONDS)
    refused = shared.total > limit
    if refused:
        shared = tallies.add(key, -count, window_seconds=WINDOW_SECONDS)
    with _lock:
        share.ends, share.total = now + shared.seconds_left, shared.total
    if refused:
        raise _too_many(limit, shared.seconds_left)


def _too_many(limit: int, seconds_left: float) -> TooManyWrites:
    return TooManyWrites(
        f"More than {limit} memories in a minute.", retry_after_seconds=max(1, math.ceil(seconds_left))
    )


def forget_all() -> None:
    """Drop what this process knows, as a process that starts does."""
    _shares.clear()
