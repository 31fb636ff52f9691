"""Jobs: work that an answer of 202 promised."""

from typing import Any

from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.pagination import Cursor, Limit, page
from memoryhub.api.schemas.jobs import JobOut, JobPage
from memoryhub.work import queries, services

router = Router(tags=["Jobs"])


@router.get("/jobs", auth=requires(None), response=JobPage, operation_id="listJobs", summary="List jobs, newest first")
def list_jobs(request: ApiRequest, limit: Limit, cursor: Cursor = None) -> Any:
    """The workspace's jobs, the newest first."""
    jobs = queries.list_jobs(request.principal.workspace)
    return page(jobs, order=[("created_at", "desc"), ("id", "desc")], cursor=cursor, limit=limit, shape=JobOut.of)


@router.get("/jobs/{job_id}", auth=requires(None), response=JobOut, operation_id="getJob", summary="Read one job")
def get_job(request: ApiRequest, job_id: str) -> Any:
    """State, progress, result and error of one job."""
    return JobOut.of(queries.get_job(request.principal.workspace, job_id))


@router.post(
    "/jobs/{job_id}/retry",
    auth=requires("admin"),
    response=JobOut,
    operation_id="retryJob",
    summary="Give a dead job new attempts",
)
def retry_job(request: ApiRequest, job_id: str) -> Any:
    """A job that has used up its attempts is queued again."""
    return JobOut.of(services.retry_job(workspace=request.principal.workspace, public_id=job_id))
