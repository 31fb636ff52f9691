"""Telling open streams about new invalidations: at once in this process, within a second from others.

A stream waits on the bell. One thread per process looks at the epochs of the workspaces that have open streams; it runs
only while there are any, and between two looks it holds no database connection.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_EVERY_SECONDS = 1.0

_bell = threading.Condition()
_rings = 0
_listeners: Counter[int] = Counter()


def ring() -> None:
    """Wake every waiting stream of this process."""
    global _rings
    with _bell:
        _rings += 1
        _bell.notify_all()


def wait_for_ring(seen: int, timeout: float) -> int:
    """Wait until the bell rings after the count that was seen, or the time is over; return the count now."""
    with _bell:
        _bell.wait_for(lambda: _rings != seen, timeout)
        return _rings


def rings() -> int:
    """Return how often the bell has rung."""
    return _rings


@contextmanager
def listening(workspace_id: int, look: Callable[[set[int]], dict[int, int]]) -> Iterator[None]:
    """Count as a listener; the first one starts the thread that looks for other processes' invalidations."""
    with _bell:
        starts = not _listeners
        _listeners[workspace_id] += 1
    if starts:
        threading.Thread(target=_watch, args=(look,), name="invalidation-feed", daemon=True).start()
    try:
        yield
    finally:
        with _bell:
            _listeners[workspace_id] -= 1
            if _listeners[workspace_id] <= 0:
                del _listeners[workspace_id]


def _watch(look: Callable[[set[int]], dict[int, int]]) -> None:
    known: dict[int, int] = {}
    pause = threading.Event()
    while True:
        with _bell:
            workspaces = set(_listeners)
        if not workspaces:
            return
        try:
            epochs = look(workspaces)
        except Exception:
            pause.wait(LOOK_EVERY_SECONDS)
            continue
        if any(epochs.get(workspace, 0) != known.get(workspace, epochs.get(workspace, 0)) for workspace in workspaces):
            ring()
        known = epochs
        pause.wait(LOOK_EVERY_SECONDS)
