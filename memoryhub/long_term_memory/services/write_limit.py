"""Refusing a writer that runs wild."""

import threading
import time
from collections import deque

from memoryhub.long_term_memory.queries.guards import GuardSettings
from memoryhub.long_term_memory.services.writer import (
    TooManyWrites,
    Writer,
)

_recent: dict[tuple[int, str, str], deque[tuple[float, int]]] = {}
_recent_lock = threading.Lock()


def limit_writes(writer: Writer, count: int, settings: GuardSettings) -> None:
    """Refuse a writer that runs wild; counted in this process, over the last minute."""
    if not settings.max_writes_per_minute or writer.actor.kind in ("command", "job"):
        return
    key = (writer.workspace.pk, writer.actor.kind, writer.actor.id)
    now = time.monotonic()
    with _recent_lock:
        if len(_recent) > 10_000:
            _recent.clear()
        writes = _recent.setdefault(key, deque())
        while writes and writes[0][0] < now - 60:
            writes.popleft()
        if sum(number for _, number in writes) + count > settings.max_writes_per_minute:
            wait = 60 - int(now - writes[0][0]) if writes else 60
            raise TooManyWrites(
                f"More than {settings.max_writes_per_minute} memories in a minute.", retry_after_seconds=max(1, wait)
            )
        writes.append((now, count))
