"""The figures of /metrics."""

import shutil
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings

from memoryhub.prompt_cache.services.spool import lost_record_count, waiting_bytes
from memoryhub.work import queries


def collect(now: datetime) -> Iterator[tuple[str, str, float]]:
    """Yield (name, help text, value) of each figure."""
    queue = queries.summarize_queue()
    yield "jobs_waiting", "Jobs that wait for a worker", queue.waiting
    yield "jobs_running", "Jobs under a lease", queue.running
    yield "jobs_dead", "Jobs that used up their attempts", queue.dead
    waiting_since = queue.oldest_waiting_since
    yield (
        "oldest_waiting_job_seconds",
        "How long the oldest due job waits",
        max(0.0, (now - waiting_since).total_seconds()) if waiting_since else 0.0,
    )
    yield "proxy_lost_records", "Proxied responses that could not be recorded, ever", lost_record_count()
    yield "proxy_spooled_bytes", "Usage in files that waits for the ledger", waiting_bytes()
    yield "disk_free_bytes", "Free space where the data lies", shutil.disk_usage(settings.DATA_DIR).free
