"""Reads about later work."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Q, QuerySet

from memoryhub.common import clock, errors
from memoryhub.common.keyset import count_capped
from memoryhub.work.models import Job, JobState
from memoryhub.workspaces.models import Workspace


class UnknownJob(errors.NotFound):
    slug = "unknown-job"
    title = "Unknown job"


@dataclass(frozen=True, slots=True)
class QueueState:
    """How the queue stands: counts, and since when the oldest due job waits."""

    waiting: int
    running: int
    dead: int
    oldest_waiting_since: datetime | None


def get_job(workspace: Workspace, public_id: str) -> Job:
    """Return one job of the workspace, or of the hub itself."""
    try:
        return list_jobs(workspace).get(public_id=public_id)
    except Job.DoesNotExist as error:
        raise UnknownJob("There is no such job in this workspace.") from error


def list_jobs(workspace: Workspace) -> QuerySet[Job]:
    """Return the workspace's jobs and the hub's own for keyset paging."""
    return Job.objects.filter(Q(workspace=workspace) | Q(workspace=None))


def list_unfinished_jobs(workspace: Workspace, *, kinds: Collection[str]) -> list[Job]:
    """Return the workspace's jobs of some kinds that wait or run."""
    return list(Job.objects.unfinished().filter(workspace=workspace, kind__in=kinds))


def list_due_job_ids(limit: int = 500) -> list[int]:
    """Return the jobs that wait for a worker, the longest waiting first."""
    return list(Job.objects.due(clock.now()).order_by("run_after", "id").values_list("pk", flat=True)[:limit])


def summarize_queue(workspace: Workspace | None = None) -> QueueState:
    """Return how the queue stands, for one workspace or the whole hub."""
    jobs = Job.objects.all() if workspace is None else list_jobs(workspace)
    waiting = Q(state__in=[JobState.QUEUED, JobState.FAILED])
    figures = jobs.exclude(state=JobState.DONE).aggregate(
        waiting=Count("pk", filter=waiting),
        running=Count("pk", filter=Q(state=JobState.RUNNING)),
        dead=Count("pk", filter=Q(state=JobState.DEAD)),
        oldest=Min("run_after", filter=waiting & Q(run_after__lte=clock.now())),
    )
    return QueueState(figures["waiting"], figures["running"], figures["dead"], figures["oldest"])


def count_dead_jobs(workspace: Workspace) -> int:
    """Return how many of the workspace's jobs need a look, counted up to the cap."""
    return count_capped(Job.objects.filter(workspace=workspace, state=JobState.DEAD))
