"""Whether this process is about to stop, so that open streams can end themselves in time.

The supervisor names a FIFO in MEMORYHUB_STOP_FIFO and holds its writing end; when it closes it (or dies), every process that
watches sees the end of the file.
"""

import os
import signal
import threading
import time
from collections.abc import Callable

SUPERVISORS_TURN_SECONDS = 1.0
_event = threading.Event()
_watching = threading.Lock()


def is_set() -> bool:
    """Tell whether the process should end its streams now."""
    return _event.is_set()


def wait(seconds: float) -> bool:
    """Sleep for so many seconds or until the stop, and tell whether it has come."""
    return _event.wait(seconds)


def request() -> None:
    """Say that this process is stopping."""
    _event.set()


def watch(fifo: str | None = None, then: Callable[[], None] | None = None) -> None:
    """Watch the supervisor's FIFO in a thread of its own; `then` runs once it has closed."""
    path = fifo or os.environ.get("MEMORYHUB_STOP_FIFO")
    if not path or not _watching.acquire(blocking=False):
        return
    threading.Thread(target=_watch, args=(path, then), name="watch-supervisor", daemon=True).start()


def _watch(path: str, then: Callable[[], None] | None) -> None:
    try:
        # Opened without waiting for a writer: the supervisor had its end before it started us, so where there is none, or no
        # FIFO any more, it was killed while we were loading.
        pipe = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        pass
    else:
        os.set_blocking(pipe, True)
        while os.read(pipe, 1):
            pass
        os.close(pipe)
    _event.set()
    if then is not None:
        then()


def end_this_process() -> None:
    """Ask this process to end as TERM would."""
    os.kill(os.getpid(), signal.SIGTERM)


def end_the_server() -> None:
    """Ask the server, whose child this is, to end, in case its supervisor was killed before it could ask itself."""
    time.sleep(SUPERVISORS_TURN_SECONDS)
    parent = os.getppid()
    os.kill(parent if parent > 1 else os.getpid(), signal.SIGTERM)
