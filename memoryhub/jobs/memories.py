"""Jobs of long-term memory: decay, vectors, erasing, extraction."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings

from memoryhub.common import clock
from memoryhub.flows.erase import erase_scope
from memoryhub.flows.extract import extract_memories
from memoryhub.interchange.times import write_time
from memoryhub.jobs import backups
from memoryhub.long_term_memory import services
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.work.models import Job
from memoryhub.work.services import report_progress
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor, job_principal


def _writer(job: Job) -> services.Writer:
    return services.Writer.of(job_principal(_workspace(job), job.kind, job.public_id), door="job")


def _workspace(job: Job) -> Workspace:
    if job.workspace is None:
        raise ValueError(f"a job of the kind {job.kind} belongs to a workspace")
    return job.workspace


def run_decay(job: Job) -> dict[str, Any]:
    """Let memories fade, ask about important ones that do, and erase what lay in the trash for 30 days."""
    writer = _writer(job)
    report = services.run_decay(writer=writer, on_progress=lambda done, total: report_progress(job, done, total))
    return {
        "fading": report.fading,
        "archived": report.archived,
        "forgotten": report.forgotten,
        "asked": services.offer_fading(writer=writer),
        "erased": services.empty_trash(workspace=writer.workspace, writer_for=lambda _: writer, now=clock.now()),
        "change_set": report.change_set.public_id if report.change_set else None,
    }


def run_embedding(job: Job) -> dict[str, Any]:
    """Give every memory a vector of the embedder in use."""
    made = services.embed_missing(
        workspace=_workspace(job), on_progress=lambda done, total: report_progress(job, done, total)
    )
    return {"embedded": made}


def run_erase(job: Job) -> dict[str, Any]:
    """Erase everything of an agent, a user or a project."""
    erased = erase_scope(writer=_writer(job), scope=ScopeNames(**job.args["scope"]))
    return {**erased.as_dict(), "backups": backups_that_hold()}


def backups_that_hold() -> list[dict[str, str | None]]:
    """The copies that may still hold what was just erased, with the day on which each is gone by itself.

    A database that a restore put aside is never gone by itself: `gone_at` is None.
    """
    kept: list[dict[str, str | None]] = []
    for path in backups.list_backups():
        made_at = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        gone_at = made_at + timedelta(days=max(1, settings.BACKUPS_KEPT))
        kept.append({"name": path.name, "gone_at": write_time(gone_at)})
    return [*kept, *({"name": path.name, "gone_at": None} for path in backups.list_put_aside())]


def run_extraction(job: Job) -> dict[str, Any]:
    """Ask the provider for what is worth keeping of a session."""
    asked_by = Actor(**job.args["actor"]) if "actor" in job.args else None
    return extract_memories(workspace=_workspace(job), asked_by=asked_by, **job.args["extract"])
