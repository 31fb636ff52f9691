"""Transcripts over the API: uploads, and a refresh of the folders that the hub may read."""

from typing import Any

from django.core.exceptions import TooManyFilesSent
from django.http import UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import Router, Status

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.parser import parse_json
from memoryhub.api.schemas.jobs import JobAccepted, accepted
from memoryhub.common import errors
from memoryhub.flows.transcript_jobs import INLINE_BYTES, UploadFolder, leave_refresh_job
from memoryhub.jobs.tasks import run_now
from memoryhub.work.models import Job
from memoryhub.work.queries import get_job
from memoryhub.workspaces.models import Workspace

router = Router(tags=["Prompt cache"])
_CHUNK_BYTES = 256 * 1024

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                }
            },
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {"paths": {"type": "array", "items": {"type": "string"}}},
                    "example": {"paths": ["~/.claude/projects"]},
                }
            },
            "application/x-ndjson": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


class BadUploadError(errors.Malformed):
    slug = "bad-upload"
    title = "The upload can't be read"


@router.post(
    "/prompt-cache/import",
    auth=requires("usage:write"),
    response={202: JobAccepted},
    operation_id="importTranscripts",
    summary="Import Claude Code transcripts",
    openapi_extra=_BODY,
)
def import_transcripts(request: ApiRequest) -> Any:
    """Upload transcripts (multipart/form-data with any number of files, or one file as the body), or with
    `{"paths": [...]}` read what is new in folders that the hub may read (MEMORYHUB_TRANSCRIPT_DIRS; without paths: all of
    them). Small imports are done when the answer arrives: look at the job's state."""
    workspace = request.principal.workspace
    if (request.content_type or "") == "application/json":
        job, pending = leave_refresh_job(workspace=workspace, paths=_paths(parse_json(request.body or b"{}")))
    else:
        job, pending = _store_upload(request, workspace)
    if pending <= INLINE_BYTES:
        run_now(job.pk)
        job = get_job(workspace, job.public_id)
    return Status(202, accepted(job))


def _paths(body: Any) -> list[str]:
    paths = body.get("paths", []) if isinstance(body, dict) else None
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths) or len(paths) > 100:
        raise errors.Invalid("paths is a list of up to 100 folders or files.")
    if set(body) - {"paths"}:
        raise errors.Invalid("The body takes paths only.")
    return paths


def _store_upload(request: ApiRequest, workspace: Workspace) -> tuple[Job, int]:
    """Stream the files to disk and leave their job; nothing is left behind where that fails."""
    upload = UploadFolder()
    try:
        _stream(request, upload)
        return upload.leave_job(workspace), upload.size()
    except BaseException:
        upload.discard()
        raise


def _stream(request: ApiRequest, upload: UploadFolder) -> None:
    try:
        if request.content_type == "multipart/form-data":
            for _, files in request.FILES.lists():
                for file in files:
                    upload.add(file.name or "", file.chunks(_CHUNK_BYTES))
        else:
            upload.add("transcript.jsonl", iter(lambda: request.read(_CHUNK_BYTES), b""))
    except (MultiPartParserError, TooManyFilesSent, UnreadablePostError) as error:
        raise BadUploadError(str(error) or "The upload ended early.") from error
