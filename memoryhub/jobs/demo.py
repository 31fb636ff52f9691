"""The demo, asked for on a page."""

from functools import partial
from typing import Any

from memoryhub.flows.demo.load import load_demo
from memoryhub.work.models import Job
from memoryhub.work.services import report_progress


def run(job: Job) -> dict[str, Any]:
    """Fill the demo's workspace; done again, it is made anew."""
    loaded = load_demo(progress=partial(report_progress, job))
    return {"workspace": loaded.workspace.name, "admins": len(loaded.admins)}
