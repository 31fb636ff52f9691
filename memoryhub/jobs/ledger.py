"""Tending a workspace's ledger every hour, pricing many records anew, and finding out what needs single requests."""

from typing import Any

from memoryhub.prompt_cache.services.findings import find_out
from memoryhub.prompt_cache.services.repricing import reprice_in_steps
from memoryhub.prompt_cache.services.tending import tend_ledger
from memoryhub.work.models import Job
from memoryhub.work.services import report_progress


def run(job: Job) -> dict[str, Any]:
    """Move the daily sums to the workspace's zone where that changed, and price what a newer price list knows."""
    return tend_ledger(workspace=job.workspace) if job.workspace else {}


def run_repricing(job: Job) -> dict[str, Any]:
    """Price the records of some models with the book as it is now."""
    if job.workspace is None:
        return {}
    done = reprice_in_steps(
        workspace=job.workspace, models=job.args["models"], progress=lambda count: report_progress(job, count)
    )
    return {"records": done.records, "newly_priced": done.newly_priced}


def run_findings(job: Job) -> dict[str, Any]:
    """Sum up the waste of days that are over, and replay the dearest sessions under all plans."""
    if job.workspace is None:
        return {}
    found = find_out(workspace=job.workspace)
    return {"days": found.days, "sessions": found.sessions}
