"""Kind of job -> who does it. A handler takes the Job, calls one service or flow and returns a small result.

Handlers may run more than once (a worker can die at any moment), so each has the same effect twice as once. A new kind is one
line here and a test in tests/jobs.
"""

from collections.abc import Callable
from typing import Any

from memoryhub.flows import memory_jobs, memory_uploads, transcript_jobs
from memoryhub.jobs import backups, demo, doctor, housekeeping, ledger, memories, session_cache, webhooks
from memoryhub.webhooks import services as webhook_services
from memoryhub.work.models import Job

Handler = Callable[[Job], dict[str, Any]]
HANDLERS: dict[str, Handler] = {
    "backup": backups.run,
    memory_jobs.BULK: memory_jobs.run_bulk_job,
    "collect_session_garbage": session_cache.run_garbage,
    "decay": memories.run_decay,
    webhook_services.JOB_KIND: webhooks.run_delivery,
    "diagnose": doctor.run_diagnosis,
    "embed_memories": memories.run_embedding,
    "erase": memories.run_erase,
    "extract": memories.run_extraction,
    "find_out": ledger.run_findings,
    "forget_bodies": doctor.run_forgetting,
    "housekeeping": housekeeping.run,
    memory_uploads.JOB_KIND: memory_uploads.run_import_job,
    "import_transcripts": transcript_jobs.run_import_job,
    "load_demo": demo.run,
    memory_jobs.REDRAW: memory_jobs.run_redraw_job,
    memory_jobs.REVERT: memory_jobs.run_revert_job,
    "sweep_tool_results": session_cache.run_sweep,
    "reprice": ledger.run_repricing,
    "tend_ledger": ledger.run,
}
