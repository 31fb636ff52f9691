"""Sessions of agents, the last active first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memoryhub.session_cache.queries import pages
from memoryhub.session_cache.queries import sessions as queries
from memoryhub.web import paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.session_words import session_url
from memoryhub.web.tidy_urls import tidied
from memoryhub.workspaces.models import Session

LAST_ACTIVE_FIRST: paging.Order = (("last_active_at", "desc"), ("id", "desc"))


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as its row shows it."""

    title: str
    sid: str
    url: str
    agent: str
    user: str
    project: str
    events: int
    tokens: int
    results: int
    hits: int
    last_active_at: datetime


def _row(session: Session, results: tuple[int, int]) -> SessionRow:
    tree = getattr(session, "tree", None)
    return SessionRow(
        title=session.title or session.sid,
        sid=session.sid if session.title else "",
        url=session_url(session.sid),
        agent=session.agent.name if session.agent else "",
        user=session.user,
        project=session.project,
        events=tree.event_count if tree else 0,
        tokens=tree.token_count if tree else 0,
        results=results[0],
        hits=results[1],
        last_active_at=session.last_active_at,
    )


@require_GET
@member("viewer")
@tidied
def sessions(request: MemberRequest) -> HttpResponse:
    """List sessions; the search and the chips stand in the address."""
    chosen: dict[str, Any] = {name: request.GET.get(name, "")[:500] for name in ("agent", "user", "project")}
    text = request.GET.get("q", "").strip()[:200]
    found = queries.list_sessions(request.principal, **{name: value or None for name, value in chosen.items()})
    page = paging.page_of(request, pages.search_sessions(found, text), order=LAST_ACTIVE_FIRST)
    results = pages.count_results_by_session(session.pk for session in page.items)
    labels = {"agent": _("agent"), "user": _("user"), "project": _("project")}
    context = {
        "rows": [_row(session, results.get(session.pk, (0, 0))) for session in page.items],
        "page": page,
        "q": text,
        "chosen": [(name, value) for name, value in chosen.items() if value],
        "chips": [
            (labels[name], value, paging.url_with(request, cursor=None, **{name: None}))
            for name, value in chosen.items()
            if value
        ],
        "is_filtered": bool(text or any(chosen.values())),
        "command": _command(request),
    }
    return render(
        request, "session_cache/sessions.html#rows" if wants_part(request) else "session_cache/sessions.html", context
    )


def _command(request: MemberRequest) -> str:
    base = request.build_absolute_uri("/").rstrip("/")
    return (
        f"curl -X POST {base}/api/v1/sessions/my-first-session/events \\\n"
        '  -H "Authorization: Bearer $MEMORYHUB_KEY" -H "Content-Type: application/json" \\\n'
        '  -d \'[{"kind":"message","role":"user","content":"hello"}]\''
    )
