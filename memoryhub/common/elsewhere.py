"""Reading a long file in a process of its own, so that a second core makes the next rows ready while these are stored.

Threads don't help there: two that both work in Python hold each other up.
"""

import fcntl
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import IO, Any, BinaryIO

from memoryhub.common import errors

PIECE = 256 * 1024  # bytes of the file that travel together
PIPE = 1024 * 1024  # bytes that wait in the pipe: an item, while the next one is made. Linux grants no more by itself.
_WAIT_SECONDS = 5


class ReaderDied(errors.Unavailable):
    """The reading process ended before the file did: killed, or out of memory."""

    slug = "reader-died"
    title = "The process that reads the file ended too early"


def has_cores() -> bool:
    """Whether a second process would have a core of its own."""
    return len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) > 1


def read_elsewhere(work: Callable[..., Iterator[Any]], stream: BinaryIO, *args: Any) -> Generator[Any]:
    """Yield what `work(stream, *args)` yields, which runs in another process; what it raises is raised here in its turn.

    `work` is a function of a module, and must not use the database; its arguments and items travel pickled. The other
    process is one item ahead. It ends with this iterator, however that ends, and with this process, even a killed one.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    feed, items = process.stdin, process.stdout
    assert feed is not None
    assert items is not None
    with suppress(OSError, AttributeError):  # a system that has no such setting, or a user who has many pipes
        fcntl.fcntl(items.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
    feeder = _Feeder(stream, feed, (work.__module__, work.__name__, pickle.dumps(args)))
    feeder.start()
    try:
        yield from _received(items, feeder)
    finally:
        process.kill()  # it holds nothing that would need an orderly end
        with suppress(subprocess.TimeoutExpired):
            process.wait(_WAIT_SECONDS)
        items.close()
        feeder.join(_WAIT_SECONDS)


def _received(items: IO[bytes], feeder: "_Feeder") -> Iterator[Any]:
    while True:
        try:
            error, item = pickle.load(items)  # noqa: S301 - our own process wrote it
        except (EOFError, pickle.UnpicklingError) as ended:
            raise ReaderDied(
                "It was killed, or memory ran out; what came in before is stored, so run it again."
            ) from ended
        if error is None and item is None:
            error = feeder.error
        if error is not None:
            raise error
        if item is None:
            return
        yield item


class _Feeder(threading.Thread):
    """Gives the other process its task and the file, as fast as that takes it."""

    def __init__(self, stream: BinaryIO, feed: IO[bytes], task: tuple[str, str, bytes]) -> None:
        super().__init__(name="feeder", daemon=True)
        self.stream = stream
        self.feed = feed
        self.task = task
        self.error: Exception | None = None  # what reading the file raised

    def run(self) -> None:
        try:
            with self.feed:
                pickle.dump(self.task, self.feed)
                while piece := self.stream.read(PIECE):
                    self.feed.write(piece)
        except BrokenPipeError:
            pass  # nobody reads on
        except Exception as error:  # whatever a stream raises is raised again where the items are used
            self.error = error


def main() -> None:
    """What the other process does: find the function, give it the file, send what it yields."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started us decides when to end
    items = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not come between the items
    module, name, args = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own parent wrote it
    import django

    django.setup()
    from memoryhub.common.collecting import settle

    function = getattr(importlib.import_module(module), name)
    settle()
    try:
        for item in function(sys.stdin.buffer, *pickle.loads(args)):  # noqa: S301 - our own parent wrote it
            _send(items, (None, item))
        _send(items, (None, None))
    except BrokenPipeError:
        os._exit(1)  # nobody takes them
    except Exception as error:  # whatever the work raises goes to who asked for it
        _send(items, (_portable(error), None))


def _portable(error: Exception) -> Exception:
    """The error itself, or its words where it can't travel."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - our own
    except Exception:  # pickling runs the error's own code, which may raise anything
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _send(items: IO[bytes], answer: tuple[Exception | None, Any]) -> None:
    items.write(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
    items.flush()


if __name__ == "__main__":
    main()
