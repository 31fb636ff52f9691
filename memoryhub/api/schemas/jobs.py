"""Shapes of jobs."""

from typing import Any

from ninja import Schema

from memoryhub.api.schemas.base import UtcTime
from memoryhub.work.models import Job


class JobRef(Schema):
    id: str
    state: str


class JobAccepted(Schema):
    job: JobRef


class JobOut(Schema):
    id: str
    kind: str
    state: str
    attempts: int
    progress: dict[str, int]
    result: dict[str, Any]
    error: str
    created_at: UtcTime
    run_after: UtcTime
    started_at: UtcTime | None
    finished_at: UtcTime | None

    @staticmethod
    def of(job: Job) -> "JobOut":
        return JobOut(
            id=job.public_id,
            kind=job.kind,
            state=job.state,
            attempts=job.attempts,
            progress={"done": job.progress_done, "total": job.progress_total},
            result=job.result,
            error=job.error,
            created_at=job.created_at,
            run_after=job.run_after,
            started_at=job.started_at,
            finished_at=job.finished_at,
        )


class JobPage(Schema):
    items: list[JobOut]
    next_cursor: str | None


def accepted(job: Job) -> JobAccepted:
    """Return the body of a 202."""
    return JobAccepted(job=JobRef(id=job.public_id, state=job.state))
