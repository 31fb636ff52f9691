"""Large files of memories: kept beside the data until a job has imported them, however often the worker dies."""

from pathlib import Path
from typing import BinaryIO

from django.conf import settings
from django.db import transaction

from memoryhub.common import errors, ids
from memoryhub.flows.import_memories import import_stream
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job, report_progress
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor, Binding, Principal

JOB_KIND = "import_memories"
# What is imported while the caller waits; anything larger becomes a job.
DIRECT_BYTES = 8 * 1024 * 1024
_COPY_BYTES = 1024 * 1024


def leave_import_job(*, principal: Principal, stream: BinaryIO, format: str, file_name: str, reason: str) -> Job:
    """Keep the file and leave the job that imports it as this caller."""
    name = f"{ids.new_id('upload')}.import"
    path = _path_of(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("xb") as kept:
            while piece := stream.read(_COPY_BYTES):
                kept.write(piece)
        actor, binding = principal.actor, principal.binding
        args = {
            "upload": name,
            "format": format,
            "file_name": file_name,
            "reason": reason,
            "actor": [actor.kind, actor.id, actor.label],
            "binding": [binding.agent, binding.user, binding.project],
        }
        with transaction.atomic():
            return enqueue_job(workspace=principal.workspace, kind=JOB_KIND, args=args)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def run_import_job(job: Job) -> dict[str, object]:
    """Import the kept file and drop it; after a crash what came in before is recognised and not stored again."""
    args = job.args
    path = _path_of(args["upload"])
    if job.workspace is None or not path.exists():
        raise errors.NotFound("The uploaded file is gone.")
    writer = Writer(
        workspace=job.workspace,
        actor=Actor(*args["actor"]),
        door="job",
        reason=args["reason"],
        binding=Binding(*args["binding"]),
    )
    total = path.stat().st_size
    with path.open("rb") as stream:
        result = import_stream(
            writer=writer,
            stream=stream,
            format=args["format"],
            file_name=args["file_name"],
            progress=lambda _: report_progress(job, min(stream.tell(), total), total),
        )
    path.unlink(missing_ok=True)
    return result.as_dict()


def drop_uploads(workspace: Workspace) -> int:
    """Remove files that no unfinished job needs, and what people of this workspace uploaded and did not confirm."""
    needed = set(Job.objects.unfinished().filter(kind=JOB_KIND).values_list("args__upload", flat=True))
    left = [path for path in _files("imports", "*.import") if path.name not in needed]
    left += _files("uploads", f"{workspace.pk}-*")
    for path in left:
        path.unlink(missing_ok=True)
    return len(left)


def _files(folder: str, pattern: str) -> list[Path]:
    return list((Path(settings.DATA_DIR) / folder).glob(pattern))


def _path_of(name: str) -> Path:
    return Path(settings.DATA_DIR) / "imports" / Path(name).name
