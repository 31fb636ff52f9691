"""The job that tells webhooks."""

from typing import Any

from memoryhub.flows.announce import tell
from memoryhub.work.models import Job


def run_delivery(job: Job) -> dict[str, Any]:
    """Tell what a batch holds; with the last attempt what was not taken is given up."""
    return tell(batch=job.args["batch"], is_last=job.attempts >= job.max_attempts)
