"""The decay policy: its curve, a dry run that says which memories would change state, and the change as one change set.

In a large workspace the dry run judges a sample and says so, and a job draws the curves: neither page waits for them.
"""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.flows.memory_jobs import leave_redraw_job
from memoryhub.long_term_memory.domain.decay import PolicyBook
from memoryhub.long_term_memory.models import MemoryState
from memoryhub.long_term_memory.queries.page_rows import is_larger_than
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.services.policies import InvalidPolicy, PolicyPreview, estimate_policy, save_policy
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.charts.curves import policy_chart
from memoryhub.web.forms.decay import DecayForm
from memoryhub.web.settings import settings_tabs

MEMORIES_LISTED = 20
DRAWN_AT_ONCE = 1_000  # curves that a request draws; more are judged by a sample and drawn by a job


@require_GET
@member("viewer")
def decay_policy(request: MemberRequest) -> HttpResponse:
    """Show the policy in force."""
    book = get_policy_book(request.principal.workspace)
    return _show(request, DecayForm.of(book), book)


@require_POST
@member("editor")
def change_decay_policy(request: MemberRequest) -> HttpResponse:
    """Say what the policy would move, or put it in force."""
    form = DecayForm(data=request.POST)
    book = get_policy_book(request.principal.workspace)
    if not form.is_valid():
        return _show(request, form, book, status=422)
    writer, changes = Writer.of(request.principal, door="web"), form.changes()
    large = is_larger_than(request.principal.workspace, DRAWN_AT_ONCE)
    try:
        if request.POST.get("action") != "save":
            preview = (
                estimate_policy(writer=writer, changes=changes)
                if large
                else save_policy(writer=writer, changes=changes, dry_run=True)
            )
            return _show(request, form, preview.book, preview=preview, is_sample=large)
        if large:
            return _leave_to_job(request, writer, changes)
        saved = save_policy(writer=writer, changes=changes)
    except InvalidPolicy as error:
        form.add_error(None, error.detail)
        return _show(request, form, book, status=422)
    in_force = _("The policy is in force.")
    messages.success(request, f"{in_force} {_effect(saved)}")
    return redirect("change", public_id=saved.change_set.public_id if saved.change_set else "")


def _leave_to_job(request: MemberRequest, writer: Writer, changes: dict[str, Any]) -> HttpResponse:
    job = leave_redraw_job(writer=writer, changes=changes)
    messages.success(
        request, _("The policy is in force. A job draws the curves of all memories by it; this is its page.")
    )
    return redirect("job", public_id=job.public_id)


def _judged(preview: PolicyPreview, is_sample: bool) -> str:
    if not is_sample:
        return _effect(preview)
    note = _("Judged by %(n)s memories from all along the workspace; putting it in force judges each of them.")
    return f"{_effect(preview)} {note % {'n': formats.count(preview.matched)}}"


def _effect(preview: PolicyPreview) -> str:
    moved = sum(preview.changes.values())
    if not moved:
        return _("No memory changes its state.")
    states = ", ".join(
        f"{MemoryState(state).label} {formats.count(count)}" for state, count in sorted(preview.changes.items())
    )
    text = ngettext(
        "%(n)s of %(all)s memories changes its state: %(states)s.",
        "%(n)s of %(all)s memories change their state: %(states)s.",
        moved,
    )
    return text % {"n": formats.count(moved), "all": formats.count(preview.matched), "states": states}


def _show(
    request: MemberRequest,
    form: DecayForm,
    book: PolicyBook,
    *,
    preview: PolicyPreview | None = None,
    is_sample: bool = False,
    status: int = 200,
) -> HttpResponse:
    items = preview.items[:MEMORIES_LISTED] if preview else []
    may_edit = request.principal.role in ("editor", "admin")
    if not may_edit:
        form.lock()
    context: dict[str, Any] = {
        "tabs": settings_tabs("settings_decay", request.principal.role),
        "form": form,
        "may_edit": may_edit,
        "chart": policy_chart(book.base),
        "preview": _judged(preview, is_sample) if preview else "",
        "moved": [(f"{reverse('memories')}/{item['id']}", item["id"], MemoryState(item["to"]).label) for item in items],
    }
    return render(request, "workspaces/decay.html", context, status=status)
