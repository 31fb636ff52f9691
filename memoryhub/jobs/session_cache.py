"""Jobs of the session cache."""

from typing import Any

from memoryhub.session_cache.services.garbage import collect_garbage
from memoryhub.session_cache.services.store import sweep_expired
from memoryhub.work.models import Job


def run_sweep(job: Job) -> dict[str, Any]:
    """Remove expired tool results, some thousands at a time."""
    return {"expired": sweep_expired()}


def run_garbage(job: Job) -> dict[str, Any]:
    """Let go of old sessions, unused contents and old states of keys."""
    return collect_garbage()
