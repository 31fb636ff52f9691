"""Memories and sessions for the palette. Each is one bounded query."""

from django.db.models import Q
from django.utils.translation import gettext as _

from memoryhub.web import formats
from memoryhub.workspaces.models import Session, Workspace

RECENT_SESSIONS_SEARCHED = 2000
Row = tuple[str, str, str]


def find(workspace: Workspace, typed: str, limit: int) -> list[tuple[str, list[Row]]]:
    """Return (group, rows) for what was typed."""
    return [(_("Sessions"), _sessions(workspace, typed, limit))]


def _sessions(workspace: Workspace, typed: str, limit: int) -> list[Row]:
    recent = (
        Session.objects.filter(workspace=workspace)
        .order_by("-last_active_at", "-id")
        .values("pk")[:RECENT_SESSIONS_SEARCHED]
    )
    found = Session.objects.filter(
        Q(sid__icontains=typed) | Q(title__icontains=typed) | Q(project__icontains=typed), pk__in=recent
    )
    return [
        (session.title or session.sid, f"/sessions/{session.sid}", formats.ago(session.last_active_at))
        for session in found.order_by("-last_active_at", "-id")[:limit]
    ]
