"""Write transactions that wait their turn.

SQLite has one writer at a time and no queue: who waits polls, and under many writers one can be unlucky for longer than
the busy timeout. So the threads of a process queue at a lock of their own, one of them competes with other processes,
and a busy timeout that runs out is waited for again.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction

BUSY_TIMEOUTS = 2  # times the busy timeout of twenty seconds: then the hub is not busy but stuck
_turn = threading.Lock()


@contextmanager
def write_transaction() -> Iterator[None]:
    """Run the block in a transaction; inside another one it is a part of it, as `transaction.atomic` is."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    with _turn:
        atomic = _begin()
        try:
            yield
        except BaseException:
            atomic.__exit__(*sys.exc_info())
            raise
        atomic.__exit__(None, None, None)


def _begin() -> transaction.Atomic:
    for attempt in range(BUSY_TIMEOUTS):
        atomic = transaction.atomic()
        try:
            atomic.__enter__()
        except OperationalError as error:
            if "locked" not in str(error) or attempt == BUSY_TIMEOUTS - 1:
                raise
            continue
        return atomic
    raise AssertionError("unreachable")
