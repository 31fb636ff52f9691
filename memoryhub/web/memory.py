"""One memory: its text, where it comes from, its forgetting curve, its history, who recalled it, and what can be done."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from memoryhub.common import clock
from memoryhub.flows.memory_price import MemoryPrice, price_memory
from memoryhub.long_term_memory.models import (
    Kind,
    Memory,
    MemoryState,
    RecalledMemory,
    ReviewItem,
    ReviewKind,
    ReviewState,
    Trust,
)
from memoryhub.long_term_memory.queries import memories as queries
from memoryhub.long_term_memory.queries import page_memory
from memoryhub.long_term_memory.services.writer import MAX_TAGS
from memoryhub.web import formats, memory_rows
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.change_words import actor_label
from memoryhub.web.charts import forgetting_curve
from memoryhub.web.forms.memories import EditMemoryForm, SupersedeForm
from memoryhub.web.memory_filters import MemoryFilters
from memoryhub.web.memory_rows import Fact, memory_url, session_url
from memoryhub.web.memory_snippets import snippets_of
from memoryhub.web.memory_versions import view_versions

VERSIONS_SHOWN = 8
RECALLS_SHOWN = 12


@require_GET
@member("viewer")
def memory(request: MemberRequest, public_id: str) -> HttpResponse:
    """The page; `?edit=1` and `?supersede=1` open a form, `?importance=` tries another value on the curve."""
    return show_memory(request, public_id)


def show_memory(
    request: MemberRequest,
    public_id: str,
    *,
    edit_form: EditMemoryForm | None = None,
    supersede_form: SupersedeForm | None = None,
    status: int = 200,
) -> HttpResponse:
    """Answer the page, with a form that was not accepted where there is one."""
    found = queries.get_memory(request.principal.workspace, public_id, in_trash=True)
    now, may_edit = clock.now(), request.principal.role in ("editor", "admin")
    in_trash = found.state == MemoryState.FORGOTTEN
    row = memory_rows.row_of(found, MemoryFilters(), now, tags_shown=MAX_TAGS)
    tried = _tried_importance(request)
    if may_edit and not in_trash and edit_form is None and request.GET.get("edit"):
        edit_form = EditMemoryForm(initial=_initial(found, row))
    if may_edit and not in_trash and supersede_form is None and request.GET.get("supersede"):
        supersede_form = SupersedeForm(initial={"content": found.content})
    context = {
        "memory": _Shown(row, found.content, found.subject, in_trash),
        "may_edit": may_edit,
        "curve": _curve(found, now, tried),
        "trying": tried is not None and tried != found.importance,
        "editing": edit_form is not None,
        "edit_form": edit_form,
        "superseding": supersede_form is not None,
        "supersede_form": supersede_form,
        "edit_url": f"{row.url}?edit=1",
        "erase_url": reverse("erase_memory", args=[found.public_id]),
        "why_url": f"{reverse('search')}?{urlencode({'why': found.public_id})}",
        "notes": _notes(found, now),
        "facts": _facts(found),
        "links": _relatives(found),
        "rating_text": _rating(found),
        "snippets": snippets_of(request, found),
        **(_actions(found) if may_edit else {}),
        **_history(request, found),
        **_recalls(found),
        "price": _price(found),
    }
    return render(request, "long_term_memory/memory.html", context, status=status)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The memory as the page's template reads it: a row of the list with the whole text."""

    row: memory_rows.MemoryRow
    content: str
    subject: str
    in_trash: bool

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


@require_GET
@member("viewer")
def curve(request: MemberRequest, public_id: str) -> HttpResponse:
    """The curve with another importance, while the slider moves."""
    found = queries.get_memory(request.principal.workspace, public_id, in_trash=True)
    tried = _tried_importance(request)
    drawn = _curve(found, clock.now(), tried)
    context = {
        "curve": drawn,
        "trying": tried is not None and tried != found.importance,
        "as_part": True,
        "figure": drawn.chart.figure,
    }
    return render(request, "long_term_memory/memory.html#tune", context)


def _tried_importance(request: MemberRequest) -> float | None:
    try:
        value = float(request.GET.get("importance", ""))
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


def _curve(found: Memory, now: datetime, tried: float | None) -> forgetting_curve.CurveView:
    parts = page_memory.get_curve_parts(found)
    facts = parts.facts if tried is None else replace(parts.facts, importance=tried)
    return forgetting_curve.draw(
        facts=facts, policy=parts.policy, created_at=found.created_at, accesses=parts.accesses, now=now
    )


def _initial(found: Memory, row: memory_rows.MemoryRow) -> dict[str, Any]:
    return {
        "content": found.content,
        "subject": found.subject,
        "kind": found.kind,
        "tags": ", ".join(tag.name for tag in row.tags),
        "valid_until": found.valid_until,
        "valid_until_shown": timezone.localtime(found.valid_until).strftime("%Y-%m-%dT%H:%M")
        if found.valid_until
        else "",
    }


def _notes(found: Memory, now: datetime) -> list[dict[str, str]]:
    """What a reader must know before the text."""
    notes = []
    if found.state == MemoryState.FORGOTTEN:
        notes.append(
            {
                "tone": "bad",
                "text": _("This memory is in the trash. No agent finds it; it can be restored for 30 days."),
            }
        )
    if found.superseded_by is not None:
        link = {
            "url": memory_url(found.superseded_by.public_id),
            "link": memory_rows.clip(found.superseded_by.content, 80),
        }
        notes.append({"tone": "warn", "text": _("A newer memory took its place:"), **link})
    if found.trust == Trust.QUARANTINED:
        text = _("Quarantined: the guards found something suspicious. No agent is told it until a person accepts it.")
        notes.append({"tone": "bad", "text": text, "url": reverse("review"), "link": _("Review inbox")})
    if found.expires_at and found.expires_at <= now:
        notes.append({"tone": "warn", "text": _("Its time is over; no agent is told it any more.")})
    return notes


def _facts(found: Memory) -> list[Fact]:
    """Where it comes from and when, only what is known."""
    facts = []
    if found.session:
        facts.append(Fact(_("Session"), found.session.title or found.session.sid, session_url(found.session.sid)))
        if found.event_id:
            facts.append(Fact(_("Event"), found.event_id, session_url(found.session.sid, found.event_id)))
    filters, path = MemoryFilters(), reverse("memories")
    for label, name in ((_("Agent"), "agent"), (_("User"), "user"), (_("Project"), "project")):
        value = getattr(found.scope, name)
        if value:
            facts.append(Fact(label, value, filters.url(path, **{name: value})))
    facts.append(Fact(_("Kind"), str(Kind(found.kind).label)))
    if found.path:
        facts.append(Fact(_("Path"), found.path))
    if found.store:
        facts.append(Fact(_("Memory store"), found.store.name))
    moments = (
        (_("Created"), found.created_at),
        (_("Text changed"), found.content_changed_at),
        (_("Other facts changed"), found.metadata_changed_at),
        (_("Last recalled"), found.last_accessed_at),
        (_("Imported"), found.imported_at),
        (_("Valid from"), found.valid_from),
        (_("Valid until"), found.valid_until),
        (_("Expires"), found.expires_at),
        (_("Curve restarted"), found.decay_anchor_at),
    )
    return [*facts, *(Fact(label, at=at) for label, at in moments if at)]


def _actions(found: Memory) -> dict[str, Any]:
    url = reverse("act_on_memory", args=[found.public_id])
    labels = {
        "pin": _("Pin"),
        "unpin": _("Unpin"),
        "archive": _("Archive"),
        "forget": _("Forget"),
        "restore": _("Restore"),
        "trust": _("Trust"),
    }
    quick, more = _offered(found)
    out: dict[str, Any] = {
        "quick_actions": [{"do": do, "label": labels[do], "url": url, "primary": do == "restore"} for do in quick],
        "more_actions": [{"do": do, "label": labels[do], "url": url} for do in more],
    }
    if found.state != MemoryState.FORGOTTEN and found.superseded_by_id is None:
        out["supersede_url"] = f"{memory_url(found.public_id)}?supersede=1"
    return out


def _offered(found: Memory) -> tuple[list[str], list[str]]:
    """Which actions make sense now: (buttons, in the menu)."""
    if found.state == MemoryState.FORGOTTEN:
        return ["restore"], []
    trust = ["trust"] if found.trust != Trust.TRUSTED else []
    pin = "unpin" if found.pinned else "pin"
    if found.state == MemoryState.ARCHIVED or found.superseded_by_id is not None:
        return ["restore", "forget"], [*trust, pin]
    return [pin, "forget"], [*trust, "archive"]


def _relatives(found: Memory) -> list[dict[str, str]]:
    out = []
    if found.superseded_by is not None:
        out.append(_relative(found.superseded_by, _("replaced by"), "accent"))
    out += [_relative(old, _("replaces"), "") for old in queries.list_superseded(found)]
    return [*out, *(pair for item in page_memory.list_pairs(found) if (pair := _pair(item, found)))]


def _relative(other: Memory, what: str, tone: str) -> dict[str, str]:
    return {
        "url": memory_url(other.public_id),
        "text": memory_rows.clip(other.content, 120),
        "what": what,
        "tone": tone,
    }


def _pair(item: ReviewItem, found: Memory) -> dict[str, str] | None:
    other = item.other if item.memory_id == found.pk else item.memory
    if other is None:
        return None
    waiting = item.state == ReviewState.OPEN
    if item.kind == ReviewKind.CONTRADICTION:
        what = _("contradicts, to be reviewed") if waiting else _("contradicted")
    else:
        what = _("near duplicate, to be reviewed") if waiting else _("near duplicate")
    return _relative(other, what, "warn" if waiting else "")


def _rating(found: Memory) -> str:
    if not found.helpful_count and not found.harmful_count:
        return ""
    return _("%(helpful)s helpful, %(harmful)s harmful") % {
        "helpful": found.helpful_count,
        "harmful": found.harmful_count,
    }


def _history(request: MemberRequest, found: Memory) -> dict[str, Any]:
    start = found.version
    asked = request.GET.get("versions", "")
    if asked.isascii() and asked.isdigit() and len(asked) < 10:
        start = min(start, int(asked))
    rows = page_memory.list_versions_down_from(found, start, VERSIONS_SHOWN)
    older = rows[VERSIONS_SHOWN].number if len(rows) > VERSIONS_SHOWN else 0
    count = ngettext("%(n)s version", "%(n)s versions", found.version) % {"n": formats.count(found.version)}
    return {
        "versions": view_versions(found, rows, VERSIONS_SHOWN, may_redact=request.principal.role == "admin"),
        "older_versions_url": f"{memory_url(found.public_id)}?versions={older}#versions-title" if older else "",
        "version_count_text": count,
    }


def _recalls(found: Memory) -> dict[str, Any]:
    summary = queries.summarize_recalls(found, limit=RECALLS_SHOWN)
    text = ""
    if summary.count:
        text = ngettext("recalled %(n)s time", "recalled %(n)s times", summary.count) % {
            "n": formats.capped_count(summary.count)
        }
        text += f", {formats.ago(summary.last[0].receipt.created_at)}"
    return {"receipts": [_receipt(line) for line in summary.last], "recall_summary": text}


def _receipt(line: RecalledMemory) -> dict[str, Any]:
    receipt = line.receipt
    named = {name: value for name, value in receipt.scope.items() if value and name in ("agent", "user", "project")}
    return {
        "query": receipt.query,
        "bench_url": f"{reverse('search')}?{urlencode({'q': receipt.query[:500], **named})}",
        "who": actor_label(receipt.actor_kind, receipt.actor_label),
        "session": receipt.session.sid if receipt.session else "",
        "session_url": session_url(receipt.session.sid) if receipt.session else "",
        "rank": line.rank,
        "score": line.score,
        "at": receipt.created_at,
    }


def _price(found: Memory) -> dict[str, Any] | None:
    """What it costs in the prompt cache, where requests were seen to carry it."""
    price = price_memory(workspace=found.workspace, memory=found, now=clock.now())
    if price is None:
        return None
    names = {"tools": _("In the tools"), "system": _("In the system prompt"), "messages": _("In the messages")}
    lines = [
        {
            "label": names[place.place],
            "value": ngettext(
                "%(usd)s a day in cache breaks (%(count)s break)",
                "%(usd)s a day in cache breaks (%(count)s breaks)",
                place.breaks,
            )
            % {"usd": formats.usd(place.usd_per_day), "count": place.breaks},
        }
        for place in price.places
    ]
    note = ""
    if price.tail_usd_per_day is not None:
        note = _("Behind the conversation's tail the same breaks would cost %(usd)s a day.") % {
            "usd": formats.usd(price.tail_usd_per_day)
        }
    return {"lines": lines, "note": note, "unread": _unread_requests(price)}


def _unread_requests(price: MemoryPrice) -> str:
    """Say of how many requests the price knows nothing."""
    if not price.requests_unread:
        return ""
    return ngettext(
        "%(n)s request of the sessions that used it came without its text, so what it cost there is not counted.",
        "%(n)s requests of the sessions that used it came without their text, so what it cost there is not counted.",
        price.requests_unread,
    ) % {"n": formats.count(price.requests_unread)}
