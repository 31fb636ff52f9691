"""Leaving work, taking it under a lease, and ending it. All transitions are conditional updates with a check of the row count."""

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from memoryhub.common import clock, errors, ids
from memoryhub.work.models import Job, JobState
from memoryhub.work.queries import get_job
from memoryhub.workspaces.models import Workspace

LEASE_SECONDS = settings.JOB_LEASE_SECONDS
FIRST_RETRY_SECONDS = 10
LAST_RETRY_SECONDS = 3600
MAX_ERROR_CHARACTERS = 4000

_doorbells: list[Callable[[int], None]] = []


class LeaseLost(errors.Conflict):
    slug = "lease-lost"
    title = "Another worker has taken this job over"


class NotRetryable(errors.Conflict):
    slug = "not-retryable"
    title = "Only a dead job can be retried"


def install_doorbell(ring: Callable[[int], None]) -> None:
    """Tell who rings for new jobs (jobs/ does at start-up); without a bell the sweep finds them within a minute."""
    _doorbells[:] = [ring]


def enqueue_job(
    *,
    workspace: Workspace | None,
    kind: str,
    args: dict[str, Any] | None = None,
    run_after: datetime | None = None,
    idempotency_key: str | None = None,
    max_attempts: int = 5,
) -> Job:
    """Leave a job in the caller's transaction; the bell rings after its commit.

    With an idempotency key the second call returns the first call's job.
    """
    now = clock.now()
    try:
        with transaction.atomic():
            job = Job.objects.create(
                workspace=workspace,
                public_id=ids.new_id("job"),
                kind=kind,
                args=args or {},
                run_after=run_after or now,
                idempotency_key=idempotency_key,
                max_attempts=max_attempts,
                created_at=now,
            )
    except IntegrityError:
        if idempotency_key is None:
            raise
        return Job.objects.get(idempotency_key=idempotency_key)
    ring_after_commit(job)
    return job


def ring_after_commit(job: Job) -> None:
    """Ring the bell for a job once its row is committed."""
    for ring in _doorbells:
        transaction.on_commit(partial(ring, job.pk), robust=True)


def take_lease(*, job_id: int) -> Job | None:
    """Take a due job for LEASE_SECONDS and return it, or None where another worker has it or it is not due.

    A job whose last allowed attempt lost its worker becomes dead here.
    """
    now = clock.now()
    token = secrets.token_hex(16)
    due = Job.objects.due(now).filter(pk=job_id)
    with transaction.atomic():
        due.filter(state=JobState.RUNNING, attempts__gte=F("max_attempts")).update(
            state=JobState.DEAD, finished_at=now, lease_until=None, error="The worker died during the last attempt."
        )
        taken = due.update(
            state=JobState.RUNNING,
            attempts=F("attempts") + 1,
            lease_until=now + timedelta(seconds=LEASE_SECONDS),
            lease_token=token,
            started_at=now,
            error="",
        )
    return Job.objects.select_related("workspace").get(pk=job_id) if taken else None


def renew_lease(*, job: Job) -> None:
    """Hold the lease for another LEASE_SECONDS; raises LeaseLost where another worker has it."""
    until = clock.now() + timedelta(seconds=LEASE_SECONDS)
    if not _held(job).update(lease_until=until):
        raise LeaseLost(f"{job.public_id} was taken over.")


def report_progress(job: Job, done: int, total: int = 0) -> None:
    """Store how far the job is and renew its lease."""
    until = clock.now() + timedelta(seconds=LEASE_SECONDS)
    changed = _held(job).update(progress_done=done, progress_total=total or F("progress_total"), lease_until=until)
    if not changed:
        raise LeaseLost(f"{job.public_id} was taken over.")


def finish_job(*, job: Job, result: dict[str, Any] | None = None) -> None:
    """End a job with its result."""
    changed = _held(job).update(
        state=JobState.DONE, result=result or {}, error="", lease_until=None, lease_token="", finished_at=clock.now()
    )
    if not changed:
        raise LeaseLost(f"{job.public_id} was taken over.")


def fail_job(*, job: Job, error: str, retry: bool = True) -> None:
    """Store why the job failed; it is tried again later, with growing pauses, until it is dead."""
    now = clock.now()
    dead = not retry or job.attempts >= job.max_attempts
    _held(job).update(
        state=JobState.DEAD if dead else JobState.FAILED,
        error=error[:MAX_ERROR_CHARACTERS],
        run_after=now if dead else now + timedelta(seconds=retry_pause_seconds(job.attempts)),
        lease_until=None,
        lease_token="",
        finished_at=now if dead else None,
    )


def retry_pause_seconds(attempts: int) -> int:
    """Return the pause before the next attempt: 10 s, then twice as long each time, an hour at the most."""
    return min(LAST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** max(0, attempts - 1))


def retry_job(*, workspace: Workspace, public_id: str) -> Job:
    """Give a dead job of the workspace or of the hub new attempts, now."""
    job = get_job(workspace, public_id)
    changed = Job.objects.filter(pk=job.pk, state=JobState.DEAD).update(
        state=JobState.QUEUED, attempts=0, run_after=clock.now(), finished_at=None
    )
    if not changed:
        raise NotRetryable(f"{public_id} is {job.get_state_display().lower()}.")
    job.refresh_from_db()
    ring_after_commit(job)
    return job


def forget_old_jobs(*, days: int = 30) -> int:
    """Remove done jobs that ended so many days ago and return how many."""
    oldest = clock.now() - timedelta(days=days)
    removed, _ = Job.objects.filter(state=JobState.DONE, finished_at__lt=oldest).delete()
    return removed


def forget_details(*, workspace: Workspace, except_kinds: Sequence[str]) -> int:
    """Empty the results, errors and (where they ended well) parameters of ended jobs; returns how many jobs ended."""
    ended = Job.objects.filter(workspace=workspace, state__in=[JobState.DONE, JobState.DEAD])
    ended = ended.exclude(kind__in=except_kinds)
    with transaction.atomic():
        ended.filter(state=JobState.DONE).update(args={})
        return ended.update(result={}, error="")


def _held(job: Job) -> Any:
    return Job.objects.filter(pk=job.pk, state=JobState.RUNNING, lease_token=job.lease_token)
