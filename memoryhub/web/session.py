"""One session: its tree, the window at a chosen event, its tool results; rewind and fork, with what would happen first."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memoryhub.common import errors
from memoryhub.flows.extract import request_extraction
from memoryhub.flows.rewind import preview_rewind_session, retire_memories, rewind_session
from memoryhub.long_term_memory.queries.page_rows import list_excerpts_by_rank
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.models import RecordState
from memoryhub.prompt_cache.queries.records import find_last_request
from memoryhub.session_cache.domain.event_tree import Node, Path
from memoryhub.session_cache.models import SessionEvent
from memoryhub.session_cache.queries import blobs, pages, tool_results
from memoryhub.session_cache.queries.sessions import get_session
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.events import fork_session
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.session_words import KIND_TONES, KIND_WORDS, PART_WORDS, ROLE_WORDS, excerpt, session_url
from memoryhub.web.tool_cache import EntryRow, entry_row
from memoryhub.workspaces.models import Session

EVENTS_ON_A_PAGE = 40
LANE_HEIGHT, MAP_WIDTH = 16, 1000
MOST_RESULTS = 10


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event as its row shows it."""

    event_id: str
    kind: Any
    tone: str
    role: Any
    text: str
    tokens: int
    occurred_at: Any
    url: str
    is_chosen: bool
    is_note: bool
    is_code: bool
    offshoots: list[tuple[str, str]]


@require_GET
@member("viewer")
def session(request: MemberRequest, sid: str) -> HttpResponse:
    """The way to the chosen event (`at`, default: the head), the newest first; `from` starts further back."""
    found = get_session(request.principal, sid)
    place = pages.find_node(found, request.GET.get("at") or None)
    context: dict[str, Any] = {
        "session": found,
        "may_edit": request.principal.role in ("editor", "admin"),
        "title": found.title or found.sid,
        "base_url": session_url(found.sid),
        "command": _command(request, found),
        "results": _results(found),
        "kpis": _kpis(found),
    }
    if place is not None:
        chosen, node = place
        context |= _tree_context(request, found, chosen, node)
    part = "session_cache/session.html#tree" if wants_part(request) and place else "session_cache/session.html"
    return render(request, part, context)


def _tree_context(request: MemberRequest, found: Session, chosen: SessionEvent, node: Node) -> dict[str, Any]:
    start = request.GET.get("from")
    first = pages.find_node(found, start) if start else None
    path = (first[1] if first else node).full_path
    events, older = pages.walk_back(path, limit=EVENTS_ON_A_PAGE)
    head = pages.find_node(found, None)
    at = "" if head and head[0].pk == chosen.pk else chosen.event_id
    return {
        "chosen": chosen,
        "is_head": head is not None and head[0].pk == chosen.pk,
        "head_url": session_url(found.sid),
        "events": _rows(found, chosen, path, events),
        "older_url": session_url(found.sid, at=at, **{"from": older}) if older else "",
        "newest_url": session_url(found.sid, at=at) if start else "",
        "window": _window(node),
        "request_facts": _last_request(found, chosen, is_head=at == ""),
        "map": _map(found, chosen, node),
        "prefix_hash": bytes(chosen.prefix_hash).hex(),
    }


def _rows(found: Session, chosen: SessionEvent, path: Path, events: list[SessionEvent]) -> list[EventRow]:
    contents = blobs.contents_of(event.blob_id for event in events)
    offshoots = pages.list_offshoots(path, events)
    return [
        EventRow(
            event_id=event.event_id,
            kind=KIND_WORDS[event.kind],
            tone=KIND_TONES.get(event.kind, "accent" if event.role == "user" else ""),
            role=ROLE_WORDS.get(event.role, event.role),
            text=excerpt(contents.get(event.blob_id)),
            tokens=event.tokens,
            occurred_at=event.occurred_at,
            url=session_url(found.sid, at=event.event_id),
            is_chosen=event.pk == chosen.pk,
            is_note=event.kind == "note",
            is_code=event.kind in ("tool_use", "tool_result"),
            offshoots=[_offshoot(found, shoot) for shoot in offshoots.get((event.branch_id, event.seq), [])],
        )
        for event in events
    ]


def _offshoot(found: Session, shoot: pages.Offshoot) -> tuple[str, str]:
    count = ngettext("%(count)s event", "%(count)s events", shoot.length) % {"count": formats.count(shoot.length)}
    if shoot.sid != found.sid:
        return _("session %(session)s: %(events)s") % {"session": shoot.sid, "events": count}, session_url(shoot.sid)
    return _("another branch: %(events)s") % {"events": count}, session_url(found.sid, at=shoot.tip)


def _window(node: Node) -> dict[str, Any]:
    """The bar of the window: each part's share of its tokens, as positions of an SVG of 1,000 units."""
    summary = pages.summarize_window(node.full_path)
    parts, x = [], 0.0
    for name, tokens in summary.parts.items():
        width = 1000 * tokens / summary.tokens if summary.tokens else 0.0
        share = formats.percent(tokens / summary.tokens) if summary.tokens else formats.NOTHING
        part = {"name": name, "label": PART_WORDS[name], "tokens": tokens, "share": share}
        parts.append({**part, "x": f"{x:.1f}", "width": f"{width:.1f}"})
        x += width
    return {
        "parts": parts,
        "tokens": summary.tokens,
        "events": summary.events,
        "is_compacted": bool(summary.compactions),
    }


def _last_request(found: Session, chosen: SessionEvent, *, is_head: bool) -> dict[str, Any] | None:
    """What the ledger says of the last request up to here: how much of it the prompt cache had, and what it cost."""
    record = find_last_request(found.workspace, session=found.sid, until=None if is_head else chosen.occurred_at)
    if record is None:
        return None
    written = record.cache_write_5m_tokens + record.cache_write_1h_tokens
    sent = record.input_tokens + written + record.cache_read_tokens
    share = record.cache_read_tokens / sent if sent else 0.0
    is_priced = record.state == RecordState.PRICED
    return {
        "model": record.model,
        "occurred_at": record.occurred_at,
        "sent": sent,
        "read": record.cache_read_tokens,
        "written": written,
        "share": formats.percent(share),
        "width": f"{1000 * share:.1f}",
        "usd": formats.usd(money.usd(record.cost_pico)) if is_priced else "",
        "saved_usd": formats.usd(money.usd(record.nocache_pico - record.cost_pico)) if is_priced else "",
    }


def _map(found: Session, chosen: SessionEvent, node: Node) -> dict[str, Any] | None:
    """The branches as lanes, drawn only where there is more than one."""
    lanes = pages.list_lanes(found, node.full_path)
    if len(lanes) < 2:
        return None
    longest = max(lane.start + lane.length for lane in lanes) or 1
    rows = {lane.branch_id: index for index, lane in enumerate(lanes)}

    def x_of(position: int) -> float:
        return round(10 + (MAP_WIDTH - 20) * position / longest, 1)

    drawn = []
    for index, lane in enumerate(lanes):
        y = LANE_HEIGHT * index + LANE_HEIGHT // 2
        parent = rows.get(lane.parent_id or 0)
        drawn.append(
            {
                "x1": f"{x_of(lane.start)}",
                "x2": f"{x_of(lane.start + lane.length)}",
                "y": y,
                "parent_y": None if parent is None else LANE_HEIGHT * parent + LANE_HEIGHT // 2,
                "is_current": lane.is_current,
                "url": session_url(found.sid, at=lane.tip) if lane.tip else "",
                "label": ngettext("Branch of %(count)s event", "Branch of %(count)s events", lane.length)
                % {"count": formats.count(lane.length)},
            }
        )
    return {"lanes": drawn, "width": MAP_WIDTH, "height": LANE_HEIGHT * len(lanes)}


def _results(found: Session) -> list[EntryRow]:
    entries = tool_results.list_entries(found.workspace, sid=found.sid).order_by("-id")
    doubt = pages.get_doubt(found.workspace)
    return [entry_row(entry, doubt) for entry in entries[:MOST_RESULTS]]


def _kpis(found: Session) -> list[dict[str, Any]]:
    usage.flush()
    tree = getattr(found, "tree", None)
    stats = tool_results.summarize_session(found, default_capacity_bytes=0)
    asked = stats["hits"] + stats["misses"]
    return [
        {"label": _("Events"), "value": formats.count(tree.event_count if tree else 0)},
        {"label": _("Tokens said"), "value": formats.tokens(tree.token_count if tree else 0)},
        {
            "label": _("Tool results from the cache"),
            "value": formats.percent(stats["hits"] / asked) if asked else formats.NOTHING,
            "note": _("%(hits)s of %(asked)s") % {"hits": formats.count(stats["hits"]), "asked": formats.count(asked)}
            if asked
            else "",
        },
        {
            "label": _("Tool time saved"),
            "value": formats.duration(stats["saved_ms"] / 1000) if stats["hits"] else formats.NOTHING,
        },
    ]


def _command(request: MemberRequest, found: Session) -> str:
    base = request.build_absolute_uri("/api/v1").rstrip("/")
    return f'curl -H "Authorization: Bearer $MEMORYHUB_KEY" "{base}{session_url(found.sid)}/context"'


@require_http_methods(["GET", "POST"])
@member("editor")
def rewind(request: MemberRequest, sid: str) -> HttpResponse:
    """Show what a rewind would leave behind, then do it; the memories from there may be retired in one change set."""
    found = get_session(request.principal, sid)
    target = request.POST.get("to") or request.GET.get("to", "")
    if request.method == "POST":
        outcome = rewind_session(session=found, to=target)
        messages.success(request, _("The session stands at %(event)s now.") % {"event": outcome.head})
        if request.POST.get("retire") and outcome.memory_ids:
            count = retire_memories(principal=request.principal, memory_ids=outcome.memory_ids, session=found)
            text = ngettext("%(count)s memory is in the trash.", "%(count)s memories are in the trash.", count)
            messages.success(request, text % {"count": formats.count(count)})
        return redirect(session_url(found.sid))
    outcome = preview_rewind_session(session=found, to=target)
    context = {
        "session": found,
        "to": target,
        "back_url": session_url(found.sid, at=target),
        "abandoned": outcome.abandoned_count,
        "results": tool_results.count_seen_after(found, target),
        "memories": list_excerpts_by_rank(request.principal.workspace, list(outcome.memory_ids[:50])),
        "memory_count": len(outcome.memory_ids),
    }
    return render(request, "session_cache/rewind.html", context)


@require_http_methods(["GET", "POST"])
@member("editor")
def fork(request: MemberRequest, sid: str) -> HttpResponse:
    """Ask for the new session's name, and say what it shares; then start it."""
    found = get_session(request.principal, sid)
    at = request.POST.get("at") or request.GET.get("at") or ""
    name, problem = request.POST.get("session", "").strip(), ""
    if request.method == "POST":
        try:
            forked = fork_session(workspace=found.workspace, session=found, at=at or None, sid=name)
        except (errors.Conflict, errors.Invalid) as error:
            problem = error.detail
        else:
            messages.success(request, _("The fork shares everything up to here."))
            return redirect(session_url(forked.sid))
    place = pages.find_node(found, at or None)
    summary = pages.summarize_window(place[1].full_path) if place else None
    context = {
        "session": found,
        "at": at,
        "name": name or f"{found.sid}-fork",
        "problem": problem,
        "back_url": session_url(found.sid, at=at),
        "summary": summary,
    }
    return render(request, "session_cache/fork.html", context, status=422 if problem else 200)


@require_POST
@member("editor")
def extract(request: MemberRequest, sid: str) -> HttpResponse:
    """Have the session read for what is worth remembering; candidates wait in the review inbox."""
    found = get_session(request.principal, sid)
    job = request_extraction(principal=request.principal, sid=found.sid, at=request.POST.get("at") or None)
    messages.success(request, _("What is found waits in the review inbox."))
    return redirect("job", public_id=job.public_id)
