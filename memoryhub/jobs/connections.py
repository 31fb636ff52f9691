"""SQLite connections of threads that have ended.

The server ends threads that idle, and Django keeps one connection a thread; a connection whose thread is gone would stay open
until the garbage collector happens to pass. So whenever a thread opens one, those of ended threads are closed.
"""

import os
import threading
import weakref
from typing import Any

from django.db.backends.signals import connection_created

_open: dict[int, tuple[Any, Any]] = {}
_lock = threading.Lock()


def close_those_of_ended_threads() -> None:
    """Start watching (at Django's start)."""
    connection_created.connect(_on_connection, dispatch_uid="close-connections-of-ended-threads")


def _on_connection(sender: Any, connection: Any, **kwargs: Any) -> None:
    if connection.vendor != "sqlite" or connection.is_in_memory_db():
        return
    with _lock:
        alive = _native_ids()
        gone = [native_id for native_id in _open if native_id not in alive] if alive else []
        ended = [_open.pop(native_id) for native_id in gone]
        _open[threading.get_native_id()] = (weakref.ref(connection), connection.connection)
    for wrapper, raw in ended:
        kept = wrapper()
        if kept is not None and kept.connection is raw:
            kept.connection = None
        raw.close()


def _native_ids() -> set[int]:
    """Return the ids of this process's threads as the kernel knows them; empty where it can't be asked.

    Python's own list won't do: it lacks the server's threads until they ask for themselves, and closing a connection that
    such a thread is using brings the process down.
    """
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:
        return set()
