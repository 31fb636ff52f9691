"""Collecting static files once per change instead of at every start."""

import fcntl
import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command


def collect_if_changed() -> bool:
    """Collect, hash and compress the static files if any has changed, and tell whether it did.

    Hubs that start at the same moment wait for each other. Old files stay, for a hub that still serves them.
    """
    root = Path(settings.STATIC_ROOT)
    stamp, current = root.with_name(f"{root.name}.stamp"), _fingerprint()
    with root.with_name(f"{root.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == current and any(root.iterdir()):
            return False
        call_command("collectstatic", interactive=False, verbosity=0)
        stamp.write_text(current)
        return True


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
