"""Memories and sessions for the palette: the newest ones whose text holds what was typed. Each is one bounded query."""

from urllib.parse import quote

from django.urls import reverse
from django.utils.translation import gettext as _

from memoryhub.long_term_memory.queries.page_rows import find_by_text
from memoryhub.web import formats
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.queries import find_sessions

LABEL_CHARACTERS = 80
Row = tuple[str, str, str]


def find(workspace: Workspace, typed: str, limit: int) -> list[tuple[str, list[Row]]]:
    """Return (group, rows) for what was typed; the last row of the memories leads on to the whole search."""
    search = (
        _("Search all memories for “%(text)s”") % {"text": typed[:60]},
        f"{reverse('memories')}?q={quote(typed)}",
        "",
    )
    return [
        (_("Memories"), [*_memories(workspace, typed, limit), search]),
        (_("Sessions"), _sessions(workspace, typed, limit)),
    ]


def _memories(workspace: Workspace, typed: str, limit: int) -> list[Row]:
    return [
        (
            _around(memory.content, typed),
            f"{reverse('memories')}/{quote(memory.public_id, safe='')}",
            formats.ago(memory.content_changed_at),
        )
        for memory in find_by_text(workspace, typed, limit=limit)
    ]


def _around(text: str, typed: str) -> str:
    """The stretch of a text that holds what was typed."""
    at = max(0, text.lower().find(typed.lower()) - LABEL_CHARACTERS // 2)
    stretch = text[at : at + LABEL_CHARACTERS].replace("\n", " ")
    return f"{'…' if at else ''}{stretch}{'…' if at + LABEL_CHARACTERS < len(text) else ''}"


def _sessions(workspace: Workspace, typed: str, limit: int) -> list[Row]:
    return [
        (session.title or session.sid, f"/sessions/{quote(session.sid, safe='')}", formats.ago(session.last_active_at))
        for session in find_sessions(workspace, typed, limit=limit)
    ]
