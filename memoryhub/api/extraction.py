"""Asking the provider what is worth keeping of a session."""

from typing import Annotated, Any

from ninja import Router, Status
from pydantic import StringConstraints

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.schemas.base import InShape
from memoryhub.api.schemas.jobs import JobAccepted, accepted
from memoryhub.flows.extract import request_extraction

router = Router(tags=["Sessions"])


class ExtractIn(InShape):
    """`at` is the event up to which to read; `dry_run` shows the candidates in the job's result and stores nothing."""

    at: Annotated[str, StringConstraints(max_length=200)] | None = None
    dry_run: bool = False


@router.post(
    "/sessions/{sid}/extract",
    auth=requires("memories:write"),
    response={202: JobAccepted},
    operation_id="extractMemories",
    summary="Find what is worth remembering in a session",
)
def extract(request: ApiRequest, sid: str, body: ExtractIn | None = None) -> Any:
    """A job asks the provider; what it finds waits in the review inbox. Needs a provider key in the hub's settings."""
    asked = body or ExtractIn()
    job = request_extraction(principal=request.principal, sid=sid, at=asked.at, dry_run=asked.dry_run)
    return Status(202, accepted(job))
