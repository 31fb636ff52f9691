"""The tool cache: what each tool saves and costs, and the stored results."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memoryhub.session_cache.models import ToolResult
from memoryhub.session_cache.queries import pages, tool_results
from memoryhub.session_cache.services import usage
from memoryhub.web import formats, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.session_words import REASON_NAMES, REASON_WORDS, session_url, strategy_label
from memoryhub.web.tidy_urls import tidied

NEWEST_FIRST: paging.Order = (("id", "desc"),)
LARGEST_FIRST: paging.Order = (("size_bytes", "desc"), ("id", "desc"))
MOST_HIT_FIRST: paging.Order = (("hit_count", "desc"), ("id", "desc"))
ORDERS = {"newest": NEWEST_FIRST, "largest": LARGEST_FIRST, "hits": MOST_HIT_FIRST}


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool as its row shows it."""

    tool: str
    figures: pages.ToolFigures
    state: Any
    tone: str
    verdict: list[str]
    verdict_tone: str
    top_miss: Any
    top_miss_name: Any
    saved: str
    filter_url: str
    policy_url: str


@dataclass(frozen=True, slots=True)
class EntryRow:
    """A stored result as its row shows it."""

    tool: str
    params: str
    session: str
    session_url: str
    depends_on: list[str]
    more_dependencies: int
    size_bytes: int
    hits: int
    stored_at: Any
    expires_at: Any
    key: str
    invalidate_url: str
    is_error: bool
    doubted_by: str  # the tool that ran since, and may have changed a file of it


def _tool_row(figures: pages.ToolFigures) -> ToolRow:
    policy = figures.policy
    if policy is None:
        state, tone = _("no policy: never cached, may change anything"), ""
    elif policy.may_change_anything:
        state, tone = _("never cached, may change anything"), "warn"
    elif not policy.cacheable:
        state, tone = _("never cached"), "warn"
    else:
        seconds = policy.ttl_seconds
        lives = formats.duration(seconds) if seconds is not None else _("default")
        state, tone = f"{strategy_label(policy.strategy)} · {lives}", "good"
    verdict, verdict_tone = _verdict(figures)
    return ToolRow(
        tool=figures.tool,
        figures=figures,
        state=state,
        tone=tone,
        verdict=verdict,
        verdict_tone=verdict_tone,
        top_miss=REASON_WORDS.get(figures.top_miss, ""),
        top_miss_name=REASON_NAMES.get(figures.top_miss, ""),
        saved=formats.duration(figures.saved_ms / 1000) if figures.hits else formats.NOTHING,
        filter_url=f"?{urlencode({'tool': figures.tool})}#entries",
        policy_url=f"{reverse('tool_policy')}?{urlencode({'tool': figures.tool})}",
    )


def _verdict(figures: pages.ToolFigures) -> tuple[list[str], str]:
    """Say what caching the tool costs and saves, a line each, and whether that is good."""
    if figures.pays is None or figures.policy is None or not figures.policy.cacheable:
        return [], ""
    costs, saves = _milliseconds(figures.lookup_ms or 0), _milliseconds(figures.saves_ms_a_call or 0)
    lines = [_("costs %(time)s a call") % {"time": costs}, _("saves %(time)s a call") % {"time": saves}]
    return lines, "good" if figures.pays else "bad"


def _milliseconds(value: float) -> str:
    return _("%(n)s ms") % {"n": f"{value:.2f}"} if value < 10 else formats.duration(value / 1000)


def entry_row(entry: ToolResult, doubt: pages.Doubt) -> EntryRow:
    """Return a stored result as its row shows it."""
    depends_on = json.loads(entry.depends_on)
    names = [str(item.get("path") or item.get("url") or item.get("name")) for item in depends_on]
    return EntryRow(
        tool=entry.tool,
        params=entry.params[:300],
        session=entry.session.sid,
        session_url=session_url(entry.session.sid),
        depends_on=names[:3],
        more_dependencies=max(0, len(names) - 3),
        size_bytes=entry.size_bytes,
        hits=entry.hit_count,
        stored_at=entry.stored_at,
        expires_at=entry.expires_at,
        key=entry.key,
        invalidate_url=f"{reverse('invalidate')}?{urlencode({'key': entry.key})}",
        is_error=entry.is_error,
        doubted_by=doubt.tool if doubt.concerns(entry, has_files=any("path" in item for item in depends_on)) else "",
    )


@require_GET
@member("viewer")
@tidied
def tool_cache(request: MemberRequest) -> HttpResponse:
    """Figures by tool, then the entries; the tool, the session, the search and the order stand in the address."""
    usage.flush()
    workspace = request.principal.workspace
    tool, sid = request.GET.get("tool", "")[:200], request.GET.get("session", "")[:200]
    order, text = request.GET.get("order", "newest"), request.GET.get("q", "").strip()[:200]
    entries = tool_results.list_entries(workspace, sid=sid or None, tool=tool or None, text=text)
    page = paging.page_of(request, entries, order=ORDERS.get(order, NEWEST_FIRST), load=tool_results.load_entries)
    tools = [_tool_row(figures) for figures in pages.list_tools(workspace)]
    doubt = pages.get_doubt(workspace)
    context = {
        "kpis": _kpis(tools),
        "tools": tools,
        "has_stale": any(row.figures.verified for row in tools),
        "entries": [entry_row(entry, doubt) for entry in page.items],
        "page": page,
        "chips": [
            (label, value, paging.url_with(request, cursor=None, **{name: None}))
            for name, label, value in (("tool", _("tool"), tool), ("session", _("session"), sid))
            if value
        ],
        "q": text,
        "kept": [
            (name, value)
            for name, value in (("tool", tool), ("session", sid), ("order", request.GET.get("order")))
            if value
        ],
        "orders": _orders(request, order),
        "may_edit": request.principal.role in ("editor", "admin"),
        "command": _command(request),
    }
    part = "session_cache/tool_cache.html#entries" if wants_part(request) else "session_cache/tool_cache.html"
    return render(request, part, context)


def _orders(request: MemberRequest, chosen: str) -> list[tuple[str, Any, bool]]:
    labels = {"newest": _("Newest"), "largest": _("Largest"), "hits": _("Most hits")}
    return [
        (paging.url_with(request, order=name, cursor=None) + "#entries", label, name == chosen)
        for name, label in labels.items()
    ]


def _kpis(tools: list[ToolRow]) -> list[dict[str, Any]]:
    hits = sum(row.figures.hits for row in tools)
    asked = hits + sum(row.figures.misses for row in tools)
    saved = sum(row.figures.saved_ms for row in tools)
    checked = sum(row.figures.verified for row in tools)
    stale = sum((row.figures.stale_rate or 0) * row.figures.verified for row in tools)
    return [
        {
            "label": _("Hit rate"),
            "value": formats.percent(hits / asked) if asked else formats.NOTHING,
            "note": _("%(hits)s of %(asked)s look-ups") % {"hits": formats.count(hits), "asked": formats.count(asked)},
        },
        {"label": _("Tool time saved"), "value": formats.duration(saved / 1000) if hits else formats.NOTHING},
        {
            "label": _("Stored results"),
            "value": formats.count(sum(row.figures.entries for row in tools)),
            "note": formats.file_size(sum(row.figures.bytes for row in tools)),
        },
        {
            "label": _("Stale hits, measured"),
            "value": formats.percent(stale / checked) if checked else formats.NOTHING,
            "note": _("of %(count)s hits that were run again") % {"count": formats.count(checked)}
            if checked
            else _("set a share of hits to check in a tool's policy"),
        },
    ]


def _command(request: MemberRequest) -> str:
    base = request.build_absolute_uri("/api/v1").rstrip("/")
    return (
        f"curl -X PUT {base}/tool-policies/read_file \\\n"
        '  -H "Authorization: Bearer $MEMORYHUB_KEY" -H "Content-Type: application/json" \\\n'
        '  -d \'{"cacheable": true, "ttl_seconds": 600}\''
    )
