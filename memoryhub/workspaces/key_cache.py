"""Proven keys, remembered in this process for a moment, so that an agent's every call doesn't ask the database.

A revoked key stops working within TTL_SECONDS. When keys were used is noted in memory and written by a thread of its own, so
that no request waits for that write: a key that was quiet is written within about a second (people watch for it when they
connect an agent), a busy one once in NOTE_EVERY_SECONDS.
"""

import hashlib
import logging
import threading
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, connection

from memoryhub.common import clock
from memoryhub.workspaces.principals import Principal
from memoryhub.workspaces.queries import find_principal_by_token
from memoryhub.workspaces.services import note_key_uses

TTL_SECONDS = 4.0
MAX_REMEMBERED = 4096
NOTE_EVERY_SECONDS = 20.0
GATHER_SECONDS = 0.5
logger = logging.getLogger(__name__)
_remembered: dict[bytes, tuple[float, Principal, int]] = {}
_uses: dict[int, datetime] = {}
_noted: dict[int, float] = {}
_wake = threading.Event()
_lock = threading.Lock()
_note_thread: threading.Thread | None = None


def authenticate(token: str) -> Principal | None:
    """Return whoever holds the token, or None."""
    fingerprint = hashlib.sha256(f"{settings.KEY_PEPPER}{token}".encode()).digest()
    now = clock.monotonic()
    held = _remembered.get(fingerprint)
    if held is None or now - held[0] > TTL_SECONDS:
        found = find_principal_by_token(token)
        if found is None:
            _remembered.pop(fingerprint, None)
            return None
        if len(_remembered) >= MAX_REMEMBERED:
            _remembered.clear()
        held = _remembered[fingerprint] = (now, *found)
    _uses[held[2]] = clock.now()
    if now - _noted.get(held[2], -NOTE_EVERY_SECONDS) >= NOTE_EVERY_SECONDS:
        _wake.set()
    _start_noting()
    return held[1]


def forget_all() -> None:
    """Forget every remembered key (a revocation in this process, and tests)."""
    _remembered.clear()


def take_due_uses(now: float) -> dict[int, datetime]:
    """Take the uses that may be written at `now` (seconds of the monotonic clock): each key once in NOTE_EVERY_SECONDS."""
    due = [key_id for key_id in list(_uses) if now - _noted.get(key_id, -NOTE_EVERY_SECONDS) >= NOTE_EVERY_SECONDS]
    _noted.update(dict.fromkeys(due, now))
    return {key_id: _uses.pop(key_id) for key_id in due}


def _start_noting() -> None:
    global _note_thread
    if _note_thread is not None or not settings.NOTE_KEY_USES:
        return
    with _lock:
        if _note_thread is None:
            _note_thread = threading.Thread(target=_note_forever, name="note-key-uses", daemon=True)
            _note_thread.start()


def _note_forever() -> None:
    pause = threading.Event()
    while True:
        _wake.wait(NOTE_EVERY_SECONDS)
        pause.wait(GATHER_SECONDS)  # the first uses of many keys become one round
        _wake.clear()
        uses = take_due_uses(clock.monotonic())
        if not uses:
            continue
        try:
            note_key_uses(uses)
        except DatabaseError:
            logger.warning("could not note when %d keys were last used; the next round will", len(uses))
        finally:
            connection.close()
