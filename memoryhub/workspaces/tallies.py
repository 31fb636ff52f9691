"""Counting events in windows of time, over all processes of the hub: what limits stand on.

A window begins with the first event after the last one ended. One statement counts and reads, so that of many at the
same moment each sees its own place in the line.
"""

from dataclasses import dataclass

from django.db import connection

from memoryhub.common import clock
from memoryhub.workspaces.models import Tally

_ADD = """
INSERT INTO workspaces_tally (key, count, ends) VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET
    count = CASE WHEN workspaces_tally.ends > %s AND workspaces_tally.ends <= %s
        THEN workspaces_tally.count + excluded.count ELSE excluded.count END,
    ends = CASE WHEN workspaces_tally.ends > %s AND workspaces_tally.ends <= %s
        THEN workspaces_tally.ends ELSE excluded.ends END
RETURNING count, ends
"""


@dataclass(frozen=True, slots=True)
class Count:
    """Events in the present window, and in how many seconds it ends."""

    total: int
    seconds_left: float


def add(key: str, number: int, *, window_seconds: float) -> Count:
    """Count some events (fewer than none takes some back) and return how many there are now in this window."""
    now = clock.now().timestamp()
    # A window that ends much later than a new one would was begun before the clock was set back: it counts as over.
    # Callers that meet read the clock a little apart, which must not begin a window anew.
    latest = now + 2 * window_seconds
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [key, number, now + window_seconds, now, latest, now, latest])
        total, ends = cursor.fetchone()
    return Count(int(total), float(ends) - now)


def clear(key: str) -> None:
    """Begin anew with the next event."""
    Tally.objects.filter(key=key).delete()


def forget_old() -> int:
    """Remove windows that are over and return how many."""
    removed, _ = Tally.objects.filter(ends__lt=clock.now().timestamp()).delete()
    return removed
