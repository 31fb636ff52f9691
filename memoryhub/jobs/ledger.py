"""Hourly tending of a workspace's ledger."""

from typing import Any

from memoryhub.prompt_cache.services.tending import tend_ledger
from memoryhub.work.models import Job


def run(job: Job) -> dict[str, Any]:
    """Move the daily sums to the workspace's zone where that changed, and price what a newer price list knows."""
    return tend_ledger(workspace=job.workspace) if job.workspace else {}
