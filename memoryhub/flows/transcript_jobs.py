"""Imports of transcripts on a running hub: uploads, and the folders that it may read, as jobs."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from memoryhub.common import clock, errors, ids
from memoryhub.flows.import_transcripts import ImportResult, Progress, import_transcripts, pending_bytes
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job, report_progress
from memoryhub.workspaces.models import Workspace

JOB_KIND = "import_transcripts"
# Up to here an import is done while the caller waits: a refresh of some new lines takes less time than asking for its state.
INLINE_BYTES = 8 * 1024 * 1024
_PROGRESS_EVERY_SECONDS = 0.5
_ERRORS_KEPT = 200
_KEEP_UPLOADS_SECONDS = 7 * 24 * 3600
_UNSAFE = re.compile(r"[^\w.\- ]+")


class FolderNotOpenError(errors.Forbidden):
    slug = "folder-not-open"
    title = "The hub may not read this folder"


class EmptyUploadError(errors.Invalid):
    slug = "empty-upload"
    title = "Nothing was uploaded"


class UploadFolder:
    """Where an upload is streamed to before its job reads it; removed unless a job is left for it."""

    def __init__(self) -> None:
        uploads = Path(settings.DATA_DIR) / "transcript-uploads"
        uploads.mkdir(mode=0o700, exist_ok=True)
        _forget_old(uploads)
        self.folder = uploads / ids.new_id("upl")
        self.folder.mkdir(mode=0o700)
        self.count = 0

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Store one file under its own name, made safe."""
        safe = _UNSAFE.sub("_", os.path.basename(name.replace("\\", "/")))[:150].lstrip(".") or "transcript.jsonl"
        target = self.folder / safe
        if target.exists():
            target = self.folder / f"{self.count}" / safe
            target.parent.mkdir()
        with target.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
        self.count += 1

    def leave_job(self, workspace: Workspace) -> Job:
        """Leave the job that reads the folder and removes it."""
        if not self.size():
            raise EmptyUploadError("Send one or more transcript files as multipart/form-data.")
        return enqueue_job(workspace=workspace, kind=JOB_KIND, args={"upload": str(self.folder)})

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _forget_old(uploads: Path) -> None:
    """Uploads whose job died are removed after a week."""
    oldest = clock.now().timestamp() - _KEEP_UPLOADS_SECONDS
    for folder in uploads.iterdir():
        if folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)


def open_folders() -> list[str]:
    """The folders of transcripts that this hub may read by itself (MEMORYHUB_TRANSCRIPT_DIRS)."""
    return [os.path.realpath(os.path.expanduser(folder)) for folder in settings.TRANSCRIPT_DIRS]


def leave_refresh_job(*, workspace: Workspace, paths: Sequence[str] = ()) -> tuple[Job, int]:
    """Leave a job that reads what is new in the open folders, or in some paths within them; and say how many bytes that are."""
    allowed = open_folders()
    wanted = [os.path.realpath(os.path.expanduser(path)) for path in paths] or allowed
    if not allowed:
        raise FolderNotOpenError("No folder is open to this hub; MEMORYHUB_TRANSCRIPT_DIRS names them.")
    for path in wanted:
        if not any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in allowed):
            raise FolderNotOpenError(f"{path[:300]} is not within a folder of MEMORYHUB_TRANSCRIPT_DIRS.")
    pending = pending_bytes(workspace=workspace, paths=wanted)
    with transaction.atomic():
        return enqueue_job(workspace=workspace, kind=JOB_KIND, args={"paths": wanted}), pending


def run_import_job(job: Job) -> dict[str, Any]:
    """Do an import job. A second run finds everything known."""
    assert job.workspace is not None
    upload = job.args.get("upload")
    if not upload:
        return _kept(import_transcripts(workspace=job.workspace, paths=job.args["paths"], progress=_progress_of(job)))
    folder = Path(upload)
    if not folder.is_dir():
        return {}  # an earlier run finished, and its worker died before saying so
    result = import_transcripts(
        workspace=job.workspace,
        paths=[path for path in folder.rglob("*") if path.is_file()],
        remember=False,
        shown_below=os.path.realpath(folder),
        progress=_progress_of(job),
    )
    shutil.rmtree(folder, ignore_errors=True)
    return _kept(result)


def _kept(result: ImportResult) -> dict[str, Any]:
    values = result.as_json()
    return {**values, "errors": values["errors"][:_ERRORS_KEPT]}


def _progress_of(job: Job) -> Progress:
    """Store progress twice a second at most."""
    last = clock.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if clock.monotonic() - last >= _PROGRESS_EVERY_SECONDS:
            last = clock.monotonic()
            report_progress(job, done, total)

    return show
