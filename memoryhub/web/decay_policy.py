"""The decay policy: its curve, a dry run that says which memories would change state, and the change as one change set."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.long_term_memory.domain.decay import PolicyBook
from memoryhub.long_term_memory.models import MemoryState
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.services.decaying import InvalidPolicy, PolicyPreview, save_policy
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.charts.curves import policy_chart
from memoryhub.web.forms.decay import DecayForm
from memoryhub.web.settings import settings_tabs

MEMORIES_LISTED = 20


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
    writer = Writer.of(request.principal, door="web")
    try:
        preview = save_policy(writer=writer, changes=form.changes(), dry_run=request.POST.get("action") != "save")
    except InvalidPolicy as error:
        form.add_error(None, error.detail)
        return _show(request, form, book, status=422)
    if preview.change_set is None:
        return _show(request, form, preview.book, preview=preview)
    messages.success(request, f"{_('The policy is in force.')} {_effect(preview)}")
    return redirect("change", public_id=preview.change_set.public_id)


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
        "preview": _effect(preview) if preview else "",
        "moved": [(f"{reverse('memories')}/{item['id']}", item["id"], MemoryState(item["to"]).label) for item in items],
    }
    return render(request, "workspaces/decay.html", context, status=status)
