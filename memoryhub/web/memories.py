"""The list of memories: search, filters with counts, sorting, editing in place; filters that the team keeps."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import clock, errors
from memoryhub.common.keyset import COUNT_CAP
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries import memories as queries
from memoryhub.long_term_memory.queries import page_rows
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.services import saved_filters
from memoryhub.web import formats, memory_rows, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.charts.strengths import draw_strengths
from memoryhub.web.htmx import wants_part
from memoryhub.web.login import next_path
from memoryhub.web.memory_facets import FacetPanel, list_facets, list_views
from memoryhub.web.memory_filters import MemoryFilters, Narrowed, narrow, room_filter
from memoryhub.web.memory_snippets import remember_with_curl
from memoryhub.web.tidy_urls import tidied

PAGE_ROWS = 30
WATCH_SECONDS = 20
SEARCH_NOTES = {
    "embedder_unavailable": gettext_lazy("The embedder does not answer: this was found by words only, not by meaning."),
}
BULK_ACTIONS: dict[str, Any] = {
    "add_tag": gettext_lazy("Add a tag"),
    "remove_tag": gettext_lazy("Remove a tag"),
    "importance": gettext_lazy("Set importance"),
    "pin": gettext_lazy("Pin"),
    "unpin": gettext_lazy("Unpin"),
    "archive": gettext_lazy("Archive"),
    "forget": gettext_lazy("Forget"),
    "restore": gettext_lazy("Restore"),
    "export": gettext_lazy("Export"),
}


@require_GET
@member("viewer")
@tidied
def memories(request: MemberRequest) -> HttpResponse:
    """The list, one page of it; a single row for htmx."""
    filters, now = MemoryFilters.read(request.GET), clock.now()
    if wants_part(request) and request.GET.get("row"):
        return render_row(request, request.GET["row"], filters, edit="edit" in request.GET)
    if wants_part(request) and request.GET.get("after"):
        return _news(request, filters, now)
    workspace = request.principal.workspace
    narrowed = narrow(workspace, filters, now)
    narrowed = replace(narrowed, wanted=queries.meet_tags(workspace, narrowed.wanted))
    facets = list_facets(workspace, filters, narrowed.wanted, now)
    page = _page(request, filters, narrowed, facets)
    rows = [_shown(request, memory, filters, now) for memory in page.items]
    context = {
        **frame(request, filters),
        **_toolbar(request, filters),
        "rows": rows,
        "page": page,
        "facets": facets.menus,
        "views": list_views(filters),
        "known_tags": facets.tags,
        "total_text": _total(filters, facets.matched, facets.more),
        "summary": _summary(request, now),
        "heads": _heads(filters),
        "notes": [SEARCH_NOTES[note] for note in narrowed.notes if note in SEARCH_NOTES],
        "curl": remember_with_curl(request),
        **_watch(filters, page, now),
        **_strengths(request, filters, narrowed),
    }
    return render(request, "long_term_memory/memories.html", context)


def frame(request: MemberRequest, filters: MemoryFilters) -> dict[str, Any]:
    """Return what a row needs around it, in the page or alone."""
    return {
        "may_edit": request.principal.role in ("editor", "admin"),
        "filters": filters,
        "next": filters.url(reverse("memories")),
        "columns": 7,
    }


def render_row(
    request: MemberRequest,
    public_id: str,
    filters: MemoryFilters,
    *,
    edit: bool = False,
    extra: dict[str, Any] | None = None,
) -> HttpResponse:
    """Answer one row alone, as it stands now."""
    memory = queries.get_memory(request.principal.workspace, public_id, in_trash=True)
    row = memory_rows.row_of(memory, filters, clock.now())
    if edit and request.principal.role != "viewer":
        row = memory_rows.editing(row, memory.content)
    return render(
        request, "long_term_memory/memories.html#row", {**frame(request, filters), "row": row, **(extra or {})}
    )


def render_problem(
    request: MemberRequest, public_id: str, filters: MemoryFilters, problem: str, typed: str | None
) -> HttpResponse:
    """Answer the row with what is wrong with the edit; a text that was typed stays open for editing."""
    memory = queries.get_memory(request.principal.workspace, public_id, in_trash=True)
    row = memory_rows.row_of(memory, filters, clock.now())
    if typed is not None:
        row = memory_rows.editing(row, typed)
    context = {**frame(request, filters), "row": row, "problem": problem}
    return render(request, "long_term_memory/memories.html#row", context, status=422)


def _page(request: MemberRequest, filters: MemoryFilters, narrowed: Narrowed, facets: FacetPanel) -> paging.Page:
    workspace = request.principal.workspace
    if narrowed.ranked is not None:
        return _ranked_page(request, narrowed.ranked)
    order = queries.ORDERS[filters.sort]
    if filters.ascending:
        order = [(name, "asc") for name, _direction in order]
    rows = queries.find_memories(workspace, narrowed.wanted, few=False) if facets.more else queries.among(facets.pks)
    return paging.page_of(request, rows, order=order, limit=PAGE_ROWS, load=page_rows.load_excerpts)


def _ranked_page(request: MemberRequest, ranked: list[str]) -> paging.Page:
    """One page of a search's hits; the cursor is the rank of its first row."""
    cursor = request.GET.get("cursor", "")
    start = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 6 else 0
    items = page_rows.list_excerpts_by_rank(request.principal.workspace, ranked[start : start + PAGE_ROWS])
    end = start + PAGE_ROWS
    more = str(end) if end < len(ranked) else ""
    first = paging.url_with(request, cursor=None) if start else ""
    return paging.Page(items, more, first, paging.url_with(request, cursor=more) if more else "")


def _shown(request: MemberRequest, memory: Memory, filters: MemoryFilters, now: datetime) -> memory_rows.MemoryRow:
    row = memory_rows.row_of(memory, filters, now)
    if request.GET.get("edit") == memory.public_id and request.principal.role != "viewer":
        return memory_rows.editing(row, memory.content)
    return row


def _strengths(request: MemberRequest, filters: MemoryFilters, narrowed: Narrowed) -> dict[str, Any]:
    """Return the bars of strength where they are asked for, and the address that opens or closes them."""
    path, shown = reverse("memories"), request.GET.get("show") == "strengths"
    if not shown:
        return {"strengths_url": f"{path}?{filters.query_string([('show', 'strengths')])}"}
    workspace = request.principal.workspace
    policy = get_policy_book(workspace).base
    bins = page_rows.count_by_strength(workspace, narrowed.wanted)
    bars = draw_strengths(bins, fades=policy.fade_threshold, archives=policy.archive_threshold)
    return {"strengths": bars, "strengths_url": filters.url(path)}


def _watch(filters: MemoryFilters, page: paging.Page, now: datetime) -> dict[str, Any]:
    """Return where the first page asks for news; pages behind it and searches stand still."""
    if page.first_url or filters.q:
        return {}
    return {
        "watch_url": f"{reverse('memories')}?{filters.query_string([('after', now.isoformat())])}",
        "watch_seconds": WATCH_SECONDS,
    }


def _news(request: MemberRequest, filters: MemoryFilters, now: datetime) -> HttpResponse:
    """Answer how many memories came since the page was made; they are shown when the person asks for it."""
    after = parse_datetime(request.GET["after"])
    if after is None or after.tzinfo is None:
        raise errors.Malformed(_("This address could not be read."))
    wanted = room_filter(filters, now)
    fresh = replace(wanted, since=max(after, wanted.since) if wanted.since else after)
    count = page_rows.count_up_to(request.principal.workspace, fresh, COUNT_CAP)
    context = {
        "news": ngettext("%(n)s new, show", "%(n)s new, show", count) % {"n": formats.capped_count(count)}
        if count
        else "",
        "next": filters.url(reverse("memories")),
        "watch_url": request.get_full_path(),
        "watch_seconds": WATCH_SECONDS,
    }
    return render(request, "long_term_memory/memories.html#news", context)


def _toolbar(request: MemberRequest, filters: MemoryFilters) -> dict[str, Any]:
    path, plain = reverse("memories"), filters.without_order()
    query = plain.query_string()
    saved = saved_filters.list_saved_filters(request.principal.workspace)
    return {
        "chips": filters.chips(path),
        "filter_query": query,
        "filter_pairs": plain.pairs(),
        "filter_pairs_without_q": replace(filters, q="").pairs(),
        "filter_pairs_without_days": replace(filters, since="", until="", created="").pairs(),
        "saved": [
            {"name": entry.name, "url": f"{path}?{entry.query}", "current": entry.query == query} for entry in saved
        ],
        "can_save": filters.narrows and request.principal.role != "viewer",
        "bulk_actions": list(BULK_ACTIONS.items()),
    }


def _summary(request: MemberRequest, now: datetime) -> list[dict[str, str]]:
    figures = page_rows.summarize_list(request.principal.workspace, now)
    path = reverse("memories")
    return [
        {"text": _("%(n)s in use") % {"n": formats.capped_count(figures.alive)}},
        {
            "text": _("%(n)s fading this week") % {"n": formats.capped_count(figures.fading_soon)},
            "url": f"{path}?view=fading-week" if figures.fading_soon else "",
        },
        {
            "text": ngettext("%(n)s waits for review", "%(n)s wait for review", figures.in_review)
            % {"n": formats.capped_count(figures.in_review)},
            "url": reverse("review") if figures.in_review else "",
        },
    ]


def _total(filters: MemoryFilters, matched: int, more: bool) -> str:
    number = f"{formats.count(matched)}+" if more else formats.count(matched)
    if not filters.narrows:
        return ngettext("%(n)s memory", "%(n)s memories", matched) % {"n": number}
    return ngettext("%(n)s matches", "%(n)s match", matched) % {"n": number}


def _heads(filters: MemoryFilters) -> list[dict[str, Any]]:
    """Return the columns; those with an order link to it, and turn it around when it is the current one."""
    columns = [
        (_("Memory"), "created", False),
        (_("Tags"), "", False),
        (_("Importance"), "importance", False),
        (_("Strength"), "strength", False),
        (_("Recalled"), "accessed", True),
        (pgettext("column", "Changed"), "recency", False),
    ]
    return [_head(filters, label, order, number) for label, order, number in columns]


def _head(filters: MemoryFilters, label: str, order: str, number: bool) -> dict[str, Any]:
    if not order or filters.q:
        return {"label": label, "number": number}
    current = filters.sort == order
    url = filters.url(reverse("memories"), sort=order, ascending=current and not filters.ascending)
    arrow = ("↑" if filters.ascending else "↓") if current else ""
    direction = ("ascending" if filters.ascending else "descending") if current else ""
    return {"label": label, "number": number, "url": url, "arrow": arrow, "sorted": direction}


@require_POST
@member("editor")
def save_filter(request: MemberRequest) -> HttpResponse:
    """Keep the filters in force under a name, for the whole team."""
    filters = MemoryFilters.of_url(f"?{request.POST.get('query', '')}").without_order()
    principal = request.principal
    saved = saved_filters.save_filter(
        workspace=principal.workspace,
        actor=principal.actor,
        name=request.POST.get("name", ""),
        query=filters.query_string(),
    )
    messages.success(request, _("Saved the filter “%(name)s” for the team.") % {"name": saved.name})
    return redirect(filters.url(reverse("memories")))


@require_POST
@member("editor")
def remove_filter(request: MemberRequest) -> HttpResponse:
    """Take a saved filter away, for the whole team."""
    name = request.POST.get("name", "")
    saved_filters.remove_filter(workspace=request.principal.workspace, actor=request.principal.actor, name=name)
    messages.success(request, _("Removed the filter “%(name)s”.") % {"name": name})
    return redirect(next_path(request, reverse("memories")))
