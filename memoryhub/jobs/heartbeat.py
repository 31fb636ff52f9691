"""The worker's sign of life: a file whose time of change is fresh while a worker runs on this machine."""

import threading
from pathlib import Path

from django.conf import settings

from memoryhub.common import clock, stopping

BEAT_EVERY_SECONDS = 5
HEARTBEAT_FILE = "worker.heartbeat"


def beat_forever() -> None:
    """Touch the file every few seconds, from a thread of its own."""
    path = Path(settings.DATA_DIR) / HEARTBEAT_FILE

    def beat() -> None:
        while True:
            path.touch()
            if stopping.wait(BEAT_EVERY_SECONDS):
                path.unlink(missing_ok=True)
                return

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()


def is_fresh() -> bool:
    """Tell whether a worker showed a sign of life within three beats."""
    try:
        beat_at = (Path(settings.DATA_DIR) / HEARTBEAT_FILE).stat().st_mtime
    except OSError:
        return False
    return clock.now().timestamp() - beat_at < 3 * BEAT_EVERY_SECONDS
