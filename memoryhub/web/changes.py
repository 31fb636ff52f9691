"""Every change set: who, what, why; and its revert."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.audit import queries
from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.common import errors
from memoryhub.flows.reverting import take_back
from memoryhub.long_term_memory.domain.duplicates import DiffPart
from memoryhub.long_term_memory.models import Operation
from memoryhub.long_term_memory.queries.changes import ChangedMemory, list_changed_memories
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.web import formats, paging, undo
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.change_words import actor_label, describe_action, door_label
from memoryhub.web.memory_rows import clip
from memoryhub.web.memory_versions import ChangedFact, compare, list_facts_changed
from memoryhub.web.price_changes import ask_before, price_rows

MEMORIES_SHOWN = 50
EXCERPT_CHARACTERS = 400
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
    detail: str


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """One memory of a change set: what it was and is, word by word and field by field."""

    url: str
    operation: Any
    tone: str
    parts: list[DiffPart]
    text: str
    facts: list[ChangedFact]


def _event_row(event: AuditEvent) -> EventRow:
    detail = ", ".join(f"{name}: {value}" for name, value in event.detail.items() if not isinstance(value, dict | list))
    return EventRow(describe_action(event.action), f"{event.subject_type} {event.subject_id}".strip(), detail[:300])


def _memory_change(changed: ChangedMemory) -> MemoryChange:
    before, after = changed.before, changed.after
    was, now = (before.content or "" if before else ""), after.content or ""
    return MemoryChange(
        url=f"{reverse('memories')}/{quote(changed.memory_id, safe='')}",
        operation=Operation(changed.operation).label,
        tone={"created": "good", "deleted": "bad"}.get(changed.operation, "accent"),
        parts=compare(was, now) if before and was != now else [],
        text=clip(now, EXCERPT_CHARACTERS),
        facts=list_facts_changed(before.facts, after.facts) if before and before.facts and after.facts else [],
    )


@require_GET
@member("viewer")
def change(request: MemberRequest, public_id: str) -> HttpResponse:
    """One change set with what it touched."""
    change_set = queries.get_change_set(request.principal.workspace, public_id)
    memories = list_changed_memories(change_set, limit=MEMORIES_SHOWN + 1)
    events = (
        queries.list_events(request.principal.workspace).filter(change_set=change_set).order_by("id")[:MEMORIES_SHOWN]
    )
    row, prices = _row(change_set), price_rows(change_set)
    needed = ("admin",) if prices else ("editor", "admin")
    context = {
        "change": row,
        "prices": prices,
        "memories": [_memory_change(changed) for changed in memories[:MEMORIES_SHOWN]],
        "more": len(memories) > MEMORIES_SHOWN,
        "shown": MEMORIES_SHOWN,
        "events": [_event_row(event) for event in events],
        "can_revert": bool(memories or prices) and not row.reverted_by and request.principal.role in needed,
    }
    return render(request, "hub/change.html", context)


@require_POST
@member("editor")
def revert(request: MemberRequest, public_id: str) -> HttpResponse:
    """Take a change set back; rows that changed since are left alone and counted. Of prices a preview comes first,
    and a large one is left to a job."""
    principal = request.principal
    prices = bool(price_rows(queries.get_change_set(principal.workspace, public_id)))
    if prices and principal.role != "admin":
        raise errors.Forbidden(_("Only admins of this workspace may do this."))
    reason, force = request.POST.get("reason", "")[:500], request.POST.get("force") == "1"
    writer = Writer.of(principal, door="web", reason=reason)
    if not prices and (job := undo.leave_to_job(writer=writer, change_set_id=public_id, force=force)):
        return redirect("job", public_id=job.public_id)
    asks = prices and request.POST.get("confirmed") != "1"
    outcome = take_back(
        principal=principal,
        change_set_id=public_id,
        door="web",
        reason=reason,
        force=force,
        dry_run=asks,
    )
    if asks:
        return ask_before(request, public_id, outcome)
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
