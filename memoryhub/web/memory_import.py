"""Memories from a file: upload, a preview of exactly what would come in, then the import as one change set."""

from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.common import errors
from memoryhub.flows.import_memories import ImportResult, import_stream
from memoryhub.flows.memory_uploads import DIRECT_BYTES, leave_import_job
from memoryhub.flows.preview_memories import PREVIEW_RECORDS, preview_import
from memoryhub.interchange.formats import AUTO, FORMATS
from memoryhub.web import formats, undo
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms import HubForm
from memoryhub.web.memory_actions import writer_of
from memoryhub.web.memory_rows import memory_url
from memoryhub.web.uploads import drop_upload, find_upload, keep_upload

LISTED = 100  # problems that the page shows one by one


def _format_choices() -> list[tuple[str, Any]]:
    return [(AUTO, pgettext("file format", "Detect it")), *((name, entry.title) for name, entry in FORMATS.items())]


class ImportForm(HubForm):
    """A file and, where it can't be told from its content, its format."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput(attrs={"class": "mem-file"}),
        help_text=gettext_lazy(
            "MemoryHub, memories.jsonl, MCP memory.jsonl, mem0, mcp-memory-service, LangGraph store, or Markdown notes."
        ),
    )
    format = forms.ChoiceField(label=gettext_lazy("Format"), choices=_format_choices, initial=AUTO)


@require_http_methods(["GET", "POST"])
@member("editor")
def memory_import(request: MemberRequest) -> HttpResponse:
    """The form; with a file the preview: what is new, known, in conflict or unreadable. Nothing is stored yet."""
    form = ImportForm(request.POST, request.FILES) if request.method == "POST" else ImportForm()
    if not (request.method == "POST" and form.is_valid()):
        return render(request, "long_term_memory/import.html", {"form": form}, status=422 if form.is_bound else 200)
    upload = form.cleaned_data["file"]
    token = keep_upload(request.principal, upload.chunks())
    name, format = Path(upload.name).name[:200], form.cleaned_data["format"]
    try:
        with find_upload(request.principal, token).open("rb") as stream:
            preview = preview_import(writer=writer_of(request), stream=stream, format=format, file_name=name)
    except (errors.Invalid, errors.TooLarge) as error:
        drop_upload(request.principal, token)
        form.add_error("file", error.detail)
        return render(request, "long_term_memory/import.html", {"form": form}, status=error.status)
    context = {**_described(preview.result), "token": token, "name": name, "format": format, "form": ImportForm()}
    if preview.goes_on:
        context["goes_on"] = _("Only the first %(n)s records were looked at; the import reads all of them.") % {
            "n": formats.count(PREVIEW_RECORDS)
        }
    return render(request, "long_term_memory/import.html", context)


@require_POST
@member("editor")
def run_import(request: MemberRequest) -> HttpResponse:
    """Import what was previewed, as one change set that one click takes back."""
    token, name = request.POST.get("token", ""), request.POST.get("name", "")[:200]
    format = request.POST.get("format", AUTO)
    format = format if format in FORMATS else AUTO
    path = find_upload(request.principal, token)
    reason = f"import of {name}"
    with path.open("rb") as stream:
        if path.stat().st_size > DIRECT_BYTES:
            return _leave_to_job(request, token, stream, name, format, reason)
        writer = replace(writer_of(request), reason=reason)
        result = import_stream(writer=writer, stream=stream, format=format, file_name=name)
    drop_upload(request.principal, token)
    done = ngettext("Imported %(n)s memory.", "Imported %(n)s memories.", result.created) % {
        "n": formats.count(result.created)
    }
    undo.offer(request, done, result.change_set.public_id if result.change_set else "")
    context = {**_described(result), "name": name, "done": True, "form": ImportForm(), "here": reverse("memories")}
    if result.change_set:
        context["change_url"] = reverse("change", args=[result.change_set.public_id])
    return render(request, "long_term_memory/import.html", context)


def _leave_to_job(
    request: MemberRequest, token: str, stream: BinaryIO, name: str, format: str, reason: str
) -> HttpResponse:
    job = leave_import_job(principal=request.principal, stream=stream, format=format, file_name=name, reason=reason)
    drop_upload(request.principal, token)
    messages.info(request, _("The file is large, so a job imports it. This page shows how far it is."))
    return redirect("job", public_id=job.public_id)


def _described(result: ImportResult) -> dict[str, Any]:
    found = FORMATS.get(result.format)
    return {
        "result": result,
        "format_title": found.title if found else result.format,
        "kpis": [
            {"label": _("New"), "value": formats.count(result.created)},
            {"label": _("Known already"), "value": formats.count(result.deduplicated), "note": _("left as they are")},
            {
                "label": _("In conflict"),
                "value": formats.count(result.conflicts),
                "note": _("an id or path is taken by another text"),
            },
            {
                "label": _("Unreadable"),
                "value": formats.count(result.skipped_count),
                "note": _("skipped, each with its line"),
            },
        ],
        "conflicts": [{**item, "url": memory_url(str(item["id"]))} for item in result.conflict_items[:LISTED]],
        "skipped": result.skipped[:LISTED],
        "not_listed": max(0, result.skipped_count - LISTED) + max(0, result.conflicts - LISTED),
    }
