"""Every change set: who, what, why; and its revert."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.audit import queries
from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.long_term_memory.services.reverting import revert_change_set
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.web import formats, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.change_words import actor_label, describe_action, door_label

NEWEST_FIRST: paging.Order = (("created_at", "desc"), ("id", "desc"))
ACTOR_KINDS = {
    "user": gettext_lazy("people"),
    "key": gettext_lazy("agents"),
    "job": gettext_lazy("jobs"),
    "command": gettext_lazy("commands"),
}


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change set as its row shows it."""

    public_id: str
    what: str
    subjects: str
    who: str
    door: str
    reason: str
    created_at: Any
    reverted_by: str
    reverts: str


def _row(change_set: ChangeSet) -> ChangeRow:
    reverted_by = next(iter(change_set.reverted_by.all()), None)
    subjects = ngettext("%(n)s row", "%(n)s rows", change_set.subject_count) % {
        "n": formats.count(change_set.subject_count)
    }
    return ChangeRow(
        change_set.public_id,
        describe_action(change_set.action),
        subjects if change_set.subject_count else "",
        actor_label(change_set.actor_kind, change_set.actor_label),
        door_label(change_set.door),
        change_set.reason,
        change_set.created_at,
        reverted_by.public_id if reverted_by else "",
        change_set.reverts.public_id if change_set.reverts else "",
    )


@require_GET
@member("viewer")
def changes(request: MemberRequest) -> HttpResponse:
    """List change sets, the newest first; by kind of actor."""
    rows = queries.list_change_sets(request.principal.workspace)
    who = request.GET.get("who", "")
    if who in ACTOR_KINDS:
        rows = rows.filter(actor_kind=who)
    page = paging.page_of(request, rows, order=NEWEST_FIRST)
    filters = [
        ("", _("Everybody"), who not in ACTOR_KINDS),
        *((kind, label, kind == who) for kind, label in ACTOR_KINDS.items()),
    ]
    context = {
        "rows": [_row(change_set) for change_set in page.items],
        "page": page,
        "filters": [(paging.url_with(request, who=kind, cursor=None), label, on) for kind, label, on in filters],
    }
    return render(request, "hub/changes.html", context)


@dataclass(frozen=True, slots=True)
class EventRow:
    """A line of the log as its row shows it."""

    what: str
    subject: str
    href: str
    detail: str
    created_at: Any


def _event_row(event: AuditEvent) -> EventRow:
    detail = ", ".join(f"{name}: {value}" for name, value in event.detail.items() if not isinstance(value, dict | list))
    href = f"/memories/{event.subject_id}" if event.subject_type == "memory" and event.subject_id else ""
    subject = f"{event.subject_type} {event.subject_id}".strip()
    return EventRow(describe_action(event.action), subject, href, detail[:300], event.created_at)


@require_GET
@member("viewer")
def change(request: MemberRequest, public_id: str) -> HttpResponse:
    """One change set with what it touched."""
    change_set = queries.get_change_set(request.principal.workspace, public_id)
    events = queries.list_events(request.principal.workspace).filter(change_set=change_set)
    page = paging.page_of(request, events, order=NEWEST_FIRST, limit=100)
    row = _row(change_set)
    context = {
        "change": row,
        "events": [_event_row(event) for event in page.items],
        "page": page,
        "can_revert": not row.reverted_by and request.principal.role in ("editor", "admin"),
    }
    return render(request, "hub/change.html", context)


@require_POST
@member("editor")
def revert(request: MemberRequest, public_id: str) -> HttpResponse:
    """Take a change set back; rows that changed since are left alone and counted."""
    writer = Writer.of(request.principal, door="web", reason=request.POST.get("reason", "")[:500])
    outcome = revert_change_set(writer=writer, change_set_id=public_id, force=request.POST.get("force") == "1")
    text = ngettext("%(n)s row is back as it was.", "%(n)s rows are back as they were.", outcome.reverted)
    messages.success(request, text % {"n": formats.count(outcome.reverted)})
    if outcome.skipped:
        left = ngettext(
            "%(n)s row changed since and was left alone.",
            "%(n)s rows changed since and were left alone.",
            len(outcome.skipped),
        )
        messages.warning(request, left % {"n": formats.count(len(outcome.skipped))})
    return redirect("change", public_id=outcome.change_set.public_id if outcome.change_set else public_id)
