"""The door for the file system: one thread follows the folders of MEMORYHUB_FILE_ROOTS and announces what changes.

A folder counts as watched from the moment its watcher runs; the sign of life is renewed every two seconds. When the
watcher stops, overflows or can't keep up, everything below the folder is announced as changed.
"""

import logging
import os
import threading
from collections.abc import Sequence

from django.conf import settings
from django.db import connection
from watchfiles import watch

from memoryhub.common import clock, stopping
from memoryhub.flows.watch_files import announce_changed_files
from memoryhub.invalidation.services import note_not_watching, note_watching

logger = logging.getLogger(__name__)
DEBOUNCE_MS = 100  # changes within it are announced together
STEP_MS = 20
SIGN_OF_LIFE_MS = 2000
PAUSE_SECONDS = 5.0
# The system's queue of changes may have run over, without a word, while nobody took from it: a process that was stopped
# or got no time. The watcher says something every two seconds unless that is so.
STALLED_SECONDS = SIGN_OF_LIFE_MS / 1000 + 1.0


def watch_forever() -> None:
    """Start a thread for each folder; does nothing where none is configured."""
    for root in settings.FILE_ROOTS:
        real = os.path.realpath(root)
        threading.Thread(target=_follow, args=(real,), name=f"watch {real}", daemon=True).start()


def _follow(root: str) -> None:
    while not stopping.is_set():
        try:
            follow_once(root)
        except Exception as error:
            logger.warning("the folder %s can't be watched: %s", root, error)
        finally:
            _forget(root)
        stopping.wait(PAUSE_SECONDS)


def follow_once(root: str, stop: threading.Event | None = None) -> None:
    """Follow a folder until the process stops. It vouches for what was stored since its first sign of life.

    A watcher that stalled may have missed anything: the whole folder counts as changed, and it vouches anew from then.
    """
    since = None
    asked_at = clock.monotonic()
    changes = watch(
        root, debounce=DEBOUNCE_MS, step=STEP_MS, rust_timeout=SIGN_OF_LIFE_MS, yield_on_timeout=True,
        stop_event=stop, raise_interrupt=False, watch_filter=None, ignore_permission_denied=True,
    )  # fmt: skip
    for batch in changes:
        if since is None:
            since = clock.now()
        elif clock.monotonic() - asked_at > STALLED_SECONDS:
            logger.warning("the watcher of %s stalled; everything below it counts as changed", root)
            announce_changed_files(root=root, paths=[root])
            since = clock.now()
        _announce(root, [path for _, path in batch])
        note_watching(path=root, since=since)
        connection.close()
        if stopping.is_set():
            return
        asked_at = clock.monotonic()


def _announce(root: str, paths: Sequence[str]) -> None:
    if paths:
        announce_changed_files(root=root, paths=paths)


def _forget(root: str) -> None:
    try:
        note_not_watching(path=root)
    except Exception as error:
        logger.warning("the folder %s is not watched, and this could not be noted: %s", root, error)
    finally:
        connection.close()
