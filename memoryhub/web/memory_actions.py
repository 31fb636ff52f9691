"""What people do to one memory: edit in place, pin, archive, forget, restore, supersede, rate, redact, erase, and undo."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from memoryhub.common import errors
from memoryhub.flows.erase import erase_memory as erase_everywhere
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries.memories import get_memory
from memoryhub.long_term_memory.services import editing, forgetting, recalling, reverting
from memoryhub.long_term_memory.services.writer import ChangedMeanwhile, MemoryChanges, MemoryDraft, Writer
from memoryhub.web import formats, memories, undo
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.memories import EditMemoryForm, SupersedeForm, split_tags
from memoryhub.web.htmx import wants_part
from memoryhub.web.login import next_path
from memoryhub.web.memory import show_memory
from memoryhub.web.memory_conflict import describe_conflict
from memoryhub.web.memory_filters import MemoryFilters
from memoryhub.web.memory_rows import memory_url

DONE: dict[str, Any] = {
    "content": gettext_lazy("Saved the new text."),
    "importance": gettext_lazy("Saved the importance."),
    "tags": gettext_lazy("Saved the tags."),
    "facts": gettext_lazy("Saved."),
    "pin": gettext_lazy("Pinned: it does not fade any more."),
    "unpin": gettext_lazy("Unpinned: it may fade again."),
    "archive": gettext_lazy("Archived: agents are not told it any more."),
    "forget": gettext_lazy("Moved to the trash; it can be restored for 30 days."),
    "restore": gettext_lazy("Restored; its curve starts anew today."),
    "trust": gettext_lazy("Marked as trusted."),
}


class NotANumber(errors.Invalid):
    slug = "not-a-number"
    title = "Importance is a number from 0 to 1"


def writer_of(request: MemberRequest) -> Writer:
    """Return the person at this page as a writer."""
    return Writer.of(request.principal, door="web", reason=request.POST.get("reason", "").strip()[:500])


def seen_version(query: QueryDict) -> int:
    """Return the version that the page showed; a write without it could overwrite what nobody saw."""
    text = query.get("version", "")
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise errors.PreconditionRequired(_("Say which version you saw: reload the page and try again."))
    return int(text)


@require_POST
@member("editor")
def edit(request: MemberRequest, public_id: str) -> HttpResponse:
    """Save one or more fields; a row for htmx, else back to where the form was."""
    version = seen_version(request.POST)
    try:
        what, changes = read_changes(request.POST)
        memory = editing.edit_memory(
            writer=writer_of(request), memory_id=public_id, changes=changes, expected_version=version
        )
    except ChangedMeanwhile:
        return show_conflict(request, public_id, changes)
    except (errors.Invalid, errors.TooLarge, errors.Conflict) as error:
        return _show_problem(request, public_id, error)
    change_set = editing.last_change_set(memory) if memory.version != version else None
    return _after_edit(request, memory, str(DONE[what]), change_set.public_id if change_set else "")


def read_changes(query: QueryDict) -> tuple[str, MemoryChanges]:
    """Return what the form is about and the changes that it asks for; a field that is not there stays as it is."""
    given: dict[str, Any] = {}
    what = "facts"
    if "add_tag" in query or "remove_tag" in query:
        what = "tags"
        given |= {
            "add_tags": split_tags(query.get("add_tag", "")),
            "remove_tags": [tag for tag in query.getlist("remove_tag") if tag],
        }
    if "importance" in query:
        what = "importance"
        given["importance"] = _importance(query)
    if "content" in query:
        what = "content"
        given["content"] = query.get("content", "").replace("\r\n", "\n")
    if "kind" in query:
        given |= _facts(query)
    return what, MemoryChanges(**given)


def _importance(query: QueryDict) -> float:
    try:
        value = float(query.get("importance", "")) + float(query.get("step") or 0)
    except ValueError as error:
        raise NotANumber(_("Importance is a number from 0 to 1.")) from error
    if query.get("step"):
        value = min(1.0, max(0.0, value))
    return round(value, 4)


def _facts(query: QueryDict) -> dict[str, Any]:
    form = EditMemoryForm(query)
    if not form.is_valid():
        raise errors.Invalid(" ".join(str(error) for errors_ in form.errors.values() for error in errors_))
    facts = {name: form.cleaned_data[name] for name in ("subject", "kind", "tags")}
    shown = form.cleaned_data["valid_until_shown"]
    if not shown or shown != query.get("valid_until"):
        facts["valid_until"] = form.cleaned_data["valid_until"]
    return facts


def came_from(request: MemberRequest, default: str) -> str:
    """Return the page of ours that the form was on: as it says itself, as htmx says, or as the browser says."""
    if request.POST.get("next"):
        return next_path(request, default)
    address = urlsplit(request.htmx.current_url or request.headers.get("Referer", ""))
    if address.netloc != request.get_host() or not address.path.startswith("/") or address.path.startswith("//"):
        return default
    return f"{address.path}?{address.query}" if address.query else address.path


def _list_of(request: MemberRequest) -> MemoryFilters:
    """Return the filters of the list that the person looks at."""
    return MemoryFilters.of_url(came_from(request, reverse("memories")))


def _after_edit(request: MemberRequest, memory: Memory, done: str, change_set: str) -> HttpResponse:
    if wants_part(request):
        extra = {"done": done, "undo": change_set} if change_set else {}
        return memories.render_row(request, memory.public_id, _list_of(request), extra=extra)
    if change_set:
        undo.offer(request, done, change_set)
    else:
        messages.info(request, _("Nothing was changed."))
    return redirect(came_from(request, memory_url(memory.public_id)))


def show_conflict(request: MemberRequest, public_id: str, changes: MemoryChanges) -> HttpResponse:
    """Answer 412 with both versions, theirs and the one that was not saved."""
    memory = get_memory(request.principal.workspace, public_id, in_trash=True)
    in_row = wants_part(request)
    filters = _list_of(request) if in_row else MemoryFilters()
    conflict = describe_conflict(memory, changes, seen_version(request.POST), filters, in_row=in_row)
    conflict["back_url"] = came_from(request, memory_url(public_id))
    context = {"conflict": conflict, "row": {"id": public_id}, **memories.frame(request, filters)}
    template = "long_term_memory/memories.html#conflict_row" if in_row else "long_term_memory/conflict.html"
    return render(request, template, context, status=412)


def _show_problem(request: MemberRequest, public_id: str, error: errors.HubError) -> HttpResponse:
    """Say beside the field what is wrong, and keep what was typed."""
    if wants_part(request):
        return memories.render_problem(request, public_id, _list_of(request), error.detail, request.POST.get("content"))
    messages.error(request, error.detail)
    if "content" in request.POST:
        return show_memory(request, public_id, edit_form=EditMemoryForm(request.POST), status=error.status)
    return redirect(came_from(request, memory_url(public_id)))


def _pin(writer: Writer, memory_id: str, version: int, *, pinned: bool) -> Memory:
    return editing.edit_memory(
        writer=writer, memory_id=memory_id, changes=MemoryChanges(pinned=pinned), expected_version=version, action="pin"
    )


def _archive(writer: Writer, memory_id: str, version: int) -> Memory:
    changes = MemoryChanges(archived=True)
    return editing.edit_memory(
        writer=writer, memory_id=memory_id, changes=changes, expected_version=version, action="archive"
    )


def _trust(writer: Writer, memory_id: str, version: int) -> Memory:
    changes = MemoryChanges(trust="trusted")
    return editing.edit_memory(writer=writer, memory_id=memory_id, changes=changes, expected_version=version)


ACTIONS: dict[str, Callable[[Writer, str, int], Memory]] = {
    "pin": lambda writer, memory_id, version: _pin(writer, memory_id, version, pinned=True),
    "unpin": lambda writer, memory_id, version: _pin(writer, memory_id, version, pinned=False),
    "archive": _archive,
    "trust": _trust,
    "forget": lambda writer, memory_id, version: forgetting.forget_memory(
        writer=writer, memory_id=memory_id, expected_version=version
    ),
    "restore": lambda writer, memory_id, version: editing.restore_memory(
        writer=writer, memory_id=memory_id, expected_version=version
    ),
}


@require_POST
@member("editor")
def act(request: MemberRequest, public_id: str) -> HttpResponse:
    """Pin, unpin, archive, trust, forget or restore one memory."""
    do = request.POST.get("do", "")
    if do not in ACTIONS:
        raise errors.Malformed(_("Choose one of the actions on the page."))
    version = seen_version(request.POST)
    try:
        memory = ACTIONS[do](writer_of(request), public_id, version)
    except ChangedMeanwhile:
        messages.warning(
            request, _("Somebody changed this memory meanwhile. Look at it as it is now, then do it again.")
        )
        return redirect(memory_url(public_id))
    change_set = editing.last_change_set(memory)
    undo.offer(request, str(DONE[do]), change_set.public_id if change_set and memory.version != version else "")
    return redirect(next_path(request, memory_url(public_id)))


@require_POST
@member("editor")
def supersede(request: MemberRequest, public_id: str) -> HttpResponse:
    """Store a newer text in the place of this one."""
    form = SupersedeForm(request.POST)
    problem = ""
    if form.is_valid():
        try:
            new = editing.supersede_memory(
                writer=writer_of(request),
                memory_id=public_id,
                draft=MemoryDraft(content=form.cleaned_data["content"]),
                expected_version=seen_version(request.POST),
            )
        except (errors.Invalid, errors.Conflict, errors.TooLarge, ChangedMeanwhile) as error:
            problem = error.detail
        else:
            messages.success(request, _("The new text took its place. The old one stays readable."))
            return redirect(memory_url(new.id))
    if problem:
        form.add_error(None, problem)
    return show_memory(request, public_id, supersede_form=form, status=422)


@require_POST
@member("editor")
def restore_version(request: MemberRequest, public_id: str, number: int) -> HttpResponse:
    """Bring an earlier form back, as a new version."""
    try:
        memory = editing.restore_memory(
            writer=writer_of(request), memory_id=public_id, version=number, expected_version=seen_version(request.POST)
        )
    except ChangedMeanwhile:
        messages.warning(
            request, _("Somebody changed this memory meanwhile. Look at it as it is now, then do it again.")
        )
        return redirect(memory_url(public_id))
    change_set = editing.last_change_set(memory)
    done = _("Restored version %(number)s as version %(version)s.") % {"number": number, "version": memory.version}
    undo.offer(request, done, change_set.public_id if change_set else "")
    return redirect(memory_url(public_id))


@require_POST
@member("editor")
def rate(request: MemberRequest, public_id: str) -> HttpResponse:
    """Say whether a memory helped or harmed."""
    helpful = request.POST.get("helpful") == "1"
    recalling.rate_memory(writer=writer_of(request), memory_id=public_id, helpful=helpful)
    messages.success(
        request, _("Thank you. Recall ranks it higher.") if helpful else _("Thank you. Recall ranks it lower.")
    )
    return redirect(memory_url(public_id))


@require_http_methods(["GET", "POST"])
@member("admin")
def redact(request: MemberRequest, public_id: str, version_id: str) -> HttpResponse:
    """Remove the content of an earlier version, after asking."""
    memory = get_memory(request.principal.workspace, public_id, in_trash=True)
    if request.method == "POST":
        editing.redact_version(writer=writer_of(request), version_id=version_id)
        messages.success(request, _("The content of that version is gone; its row stays."))
        return redirect(memory_url(memory.public_id))
    context = {
        "question": _("Redact this version?"),
        "consequence": _(
            "Its content is removed for good; that there was a version, when and by whom, stays. This can't be undone."
        ),
        "confirm_label": _("Redact"),
        "back_url": memory_url(memory.public_id),
    }
    return render(request, "confirm.html", context)


@require_http_methods(["GET", "POST"])
@member("editor")
def erase(request: MemberRequest, public_id: str) -> HttpResponse:
    """Remove every trace of a memory, after the person typed its id."""
    memory = get_memory(request.principal.workspace, public_id, in_trash=True)
    wrong = request.method == "POST" and request.POST.get("typed", "").strip() != memory.public_id
    if request.method == "POST" and not wrong:
        erased = erase_everywhere(writer=writer_of(request), memory_id=memory.public_id)
        done = ngettext("Erased, with %(n)s version.", "Erased, with %(n)s versions.", erased.versions)
        messages.success(request, done % {"n": formats.count(erased.versions)})
        return redirect("memories")
    context = {
        "id": memory.public_id,
        "excerpt": memory.content[:300],
        "back_url": memory_url(memory.public_id),
        "wrong": wrong,
    }
    return render(request, "long_term_memory/erase.html", context, status=422 if wrong else 200)


@require_POST
@member("editor")
def undo_change(request: MemberRequest) -> HttpResponse:
    """Take a change back and return to where it was made; what changed since is left alone and said."""
    writer, change_set_id = writer_of(request), request.POST.get("change_set", "")
    if job := undo.leave_to_job(writer=writer, change_set_id=change_set_id):
        return redirect("job", public_id=job.public_id)
    outcome = reverting.revert_change_set(writer=writer, change_set_id=change_set_id)
    if outcome.skipped:
        kept = ngettext(
            "%(n)s memory changed since and was left alone.",
            "%(n)s memories changed since and were left alone.",
            len(outcome.skipped),
        ) % {"n": formats.count(len(outcome.skipped))}
        undone = _("Undone where that was possible.")
        messages.warning(request, f"{undone} {kept}")
    else:
        messages.success(request, _("Undone."))
    return redirect(next_path(request, reverse("memories")))
