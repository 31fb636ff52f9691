"""The text of the invalidation stream: server-sent events with the epoch as their id."""

import json
from collections.abc import Iterator
from typing import Any

from django.db import connection

from memoryhub.common import clock, stopping
from memoryhub.invalidation import feed, queries
from memoryhub.invalidation.models import InvalidationRecord

LIFETIME_SECONDS = 60.0  # then the client connects again: a thread is never held for long by a client that is gone
HEARTBEAT_SECONDS = 10.0
MOST_MISSED = 500  # more than this and a reset is cheaper than the list


def events(
    workspace_id: int, *, after: int | None = None, lifetime_seconds: float = LIFETIME_SECONDS
) -> Iterator[bytes]:
    """Yield `hello`, what was missed since `after`, and each invalidation within a second, until the lifetime is over."""
    end = clock.monotonic() + lifetime_seconds
    heard = feed.rings()
    epoch = _looked(queries.get_epoch, workspace_id)
    yield _event("hello", epoch, {"epoch": epoch})
    if after is not None and after > epoch:
        yield _event("reset", epoch, {"epoch": epoch})
    elif after is not None:
        epoch = after
    with feed.listening(workspace_id, _epochs):
        while not stopping.is_set():
            records = _looked(queries.list_records_after, workspace_id, epoch, limit=MOST_MISSED + 1)
            if len(records) > MOST_MISSED:
                epoch = _looked(queries.get_epoch, workspace_id)
                yield _event("reset", epoch, {"epoch": epoch})
            for record in records if len(records) <= MOST_MISSED else ():
                epoch = record.epoch
                yield _event("invalidation", epoch, _shape(record))
            left = end - clock.monotonic()
            if left <= 0:
                return
            ring = _wait(heard, left)
            if ring == heard:
                yield b": still here\n\n"
            heard = ring


def _wait(heard: int, left: float) -> int:
    """Wait for the bell in short steps, so that a stopping process is not held up."""
    deadline = clock.monotonic() + min(left, HEARTBEAT_SECONDS)
    while clock.monotonic() < deadline and not stopping.is_set():
        rung = feed.wait_for_ring(heard, min(0.5, max(0.0, deadline - clock.monotonic())))
        if rung != heard:
            return rung
    return heard


def _looked(query: Any, *arguments: Any, **named: Any) -> Any:
    """Ask the database and give the connection back: a stream holds none while it waits."""
    try:
        return query(*arguments, **named)
    finally:
        if not connection.in_atomic_block:
            connection.close()


def _epochs(workspace_ids: set[int]) -> dict[int, int]:
    """What the feed's thread looks at; it holds no connection between two looks either."""
    found: dict[int, int] = _looked(queries.get_epochs, workspace_ids)
    return found


def _shape(record: InvalidationRecord) -> dict[str, Any]:
    return {
        "id": record.public_id,
        "epoch": record.epoch,
        "selector": record.selector,
        "strategy": record.strategy,
        "reason": record.reason,
        "invalidated": record.invalidated,
    }


def _event(name: str, epoch: int, data: dict[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\nid: {epoch}\ndata: {text}\n\n".encode()
