"""Collecting static files once per change instead of at every start."""

import hashlib
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

STAMP = ".stamp"


def collect_if_changed() -> bool:
    """Collect, hash and compress the static files if any has changed, and tell whether it did."""
    root = Path(settings.STATIC_ROOT)
    stamp, current = root / STAMP, _fingerprint()
    if stamp.exists() and stamp.read_text() == current:
        return False
    root.mkdir(parents=True, exist_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(current)
    return True


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
