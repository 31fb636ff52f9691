"""Transcripts on a page: upload files, or read what is new in the folders that the hub may read."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.common import errors
from memoryhub.flows.transcript_jobs import INLINE_BYTES, UploadFolder, leave_refresh_job, open_folders
from memoryhub.jobs.tasks import run_now
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms import HubForm
from memoryhub.work.models import Job, JobState
from memoryhub.work.queries import get_job


class ManyFiles(forms.FileInput):
    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """One or more files; each has to have a name and something in it."""

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile]:
        return [super(ManyFilesField, self).clean(one, initial) for one in (data or [None])]


class TranscriptForm(HubForm):
    """Files as Claude Code writes them."""

    file = ManyFilesField(
        label=gettext_lazy("Transcripts"),
        widget=ManyFiles(attrs={"class": "mem-file", "accept": ".jsonl"}),
        help_text=gettext_lazy(
            "One or more .jsonl files from ~/.claude/projects. Importing a file again changes nothing."
        ),
    )


@require_http_methods(["GET", "POST"])
@member("editor")
def transcript_import(request: MemberRequest) -> HttpResponse:
    """The form; with files their import, done at once or left to a worker."""
    form = TranscriptForm(request.POST, request.FILES) if request.method == "POST" else TranscriptForm()
    if request.method == "POST" and form.is_valid():
        upload = UploadFolder()
        try:
            for file in form.cleaned_data["file"]:
                upload.add(file.name, file.chunks())
            size, job = upload.size(), upload.leave_job(request.principal.workspace)
        except BaseException:
            upload.discard()
            raise
        return _finish(request, job, size)
    context = {"form": form, "folders": open_folders()}
    return render(request, "prompt_cache/import.html", context, status=422 if form.is_bound else 200)


@require_POST
@member("editor")
def transcript_refresh(request: MemberRequest) -> HttpResponse:
    """Read what is new in the open folders."""
    try:
        job, pending = leave_refresh_job(workspace=request.principal.workspace)
    except errors.Forbidden as error:
        messages.error(request, error.detail)
        return redirect("transcript_import")
    return _finish(request, job, pending)


def _finish(request: MemberRequest, job: Job, size: int) -> HttpResponse:
    """A small import is done while the person waits; a large one is shown as its job."""
    if size <= INLINE_BYTES:
        run_now(job.pk)
        job = get_job(request.principal.workspace, job.public_id)
    if job.state != JobState.DONE:
        return redirect("job", job.public_id)
    _tell(request, job.result)
    return redirect("report")


def _tell(request: MemberRequest, result: dict[str, Any]) -> None:
    created = result.get("records", {}).get("created", 0)
    text = ngettext("%(n)s new response.", "%(n)s new responses.", created) % {"n": formats.count(created)}
    bad = result.get("error_count", 0)
    if not bad:
        messages.success(request, text)
        return
    first = result["errors"][0]
    text += " " + ngettext(
        "%(n)s line could not be read, the first one is line %(line)s of %(file)s: %(reason)s.",
        "%(n)s lines could not be read, the first one is line %(line)s of %(file)s: %(reason)s.",
        bad,
    ) % {"n": formats.count(bad), "line": first["line"], "file": first["file"], "reason": first["reason"]}
    messages.warning(request, _("Imported with gaps.") + " " + text)
