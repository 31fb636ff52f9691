"""How one memory is shown: in a row of the list, on its own page, in a search result."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memoryhub.long_term_memory.domain.decay import Curve
from memoryhub.long_term_memory.models import Kind, Memory, MemoryState, Trust
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.long_term_memory.queries.page_rows import EXCERPT_CHARS
from memoryhub.web import formats
from memoryhub.web.memory_filters import MemoryFilters

ROW_TAGS = 6  # a memory takes a hundred; its own page shows them all
SOON = timedelta(days=14)  # from when a coming fade is worth a chip
STATE_TONES = {"fading": "warn", "archived": "", "forgotten": "bad"}
TRUST_TONES = {"unreviewed": "warn", "quarantined": "bad"}


@dataclass(frozen=True, slots=True)
class Link:
    """Words with an address."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A chip that says something unusual about a memory."""

    text: str
    tone: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class TagLink:
    """A tag, and the list filtered by it."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One memory, ready to be shown."""

    id: str
    url: str
    excerpt: str
    scope: list[Link]
    session: str
    session_url: str
    born: str
    tags: list[TagLink]
    more_tags: int
    marks: list[Mark]
    pinned: bool
    importance: float
    strength: float
    fate: Mark | None
    recalled: int
    recalled_title: str
    changed_at: datetime
    version: int
    is_quiet: bool
    edit_url: str
    row_url: str
    edit_row_url: str
    editing: bool = False
    content: str = ""
    lines: int = 3


def memory_url(public_id: str) -> str:
    """Return a memory's page; ids that came from elsewhere may hold any character."""
    return reverse("memory", args=[public_id])


def session_url(sid: str, event: str = "") -> str:
    """Return a session's page, at one of its events."""
    return f"/sessions/{quote(sid, safe='')}" + (f"?at={quote(event, safe='')}" if event else "")


def live_strength(memory: Memory, now: datetime) -> float:
    """Return today's strength from the curve on the row; the stored one is as old as the last run of the job."""
    return _curve(memory).strength_at(now)


def _curve(memory: Memory) -> Curve:
    return Curve(
        memory.importance, memory.idle_since, memory.daily_loss, memory.floor, memory.fades_at, memory.archives_at
    )


def clip(text: str, length: int = EXCERPT_CHARS) -> str:
    """Return the beginning of a text, marked where it goes on."""
    return text if len(text) <= length else f"{text[:length]}…"


def scope_links(memory: Memory, filters: MemoryFilters, path: str) -> list[Link]:
    """Return the names of a memory's scope, each filtering the list."""
    out = []
    for name in ("agent", "user", "project"):
        value = getattr(memory.scope, name)
        if value:
            shown = value.rstrip("/").rsplit("/", 1)[-1] or value if name == "project" else value
            out.append(Link(shown, filters.url(path, **{name: value})))
    return out


def tag_links(names: Sequence[str], filters: MemoryFilters, path: str) -> list[TagLink]:
    """Return tags, each adding itself to the filters in force."""
    return [TagLink(name, filters.url(path, tag=tuple(dict.fromkeys((*filters.tag, name))))) for name in names]


def marks_of(memory: Memory, now: datetime) -> list[Mark]:
    """Return what is unusual: its state, its trust, that something replaced it or its time is over."""
    marks = []
    if memory.state != MemoryState.ACTIVE:
        marks.append(Mark(str(MemoryState(memory.state).label), STATE_TONES[memory.state]))
    if memory.trust != Trust.TRUSTED:
        marks.append(Mark(str(Trust(memory.trust).label), TRUST_TONES[memory.trust]))
    if memory.superseded_at is not None:
        marks.append(Mark(_("superseded")))
    if memory.expires_at and memory.expires_at <= now:
        marks.append(Mark(_("expired")))
    elif memory.valid_until and memory.valid_until <= now and memory.superseded_at is None:
        marks.append(Mark(_("no longer valid")))
    if memory.kind != Kind.SEMANTIC:
        marks.append(Mark(str(Kind(memory.kind).label)))
    return marks


def fate_of(memory: Memory, now: datetime) -> Mark | None:
    """Return what will happen to it soon, with its date."""
    if memory.state == MemoryState.ACTIVE and memory.fades_at and memory.fades_at <= now + SOON:
        return _dated(_("fades %(day)s"), memory.fades_at, "warn")
    if (
        memory.state in (MemoryState.ACTIVE, MemoryState.FADING)
        and memory.archives_at
        and memory.archives_at <= now + SOON
    ):
        return _dated(_("archived %(day)s"), memory.archives_at, "warn")
    if memory.state == MemoryState.ARCHIVED and memory.forgets_at and memory.forgets_at <= now + SOON:
        return _dated(_("forgotten %(day)s"), memory.forgets_at, "bad")
    return None


def _dated(words: str, at: datetime, tone: str) -> Mark:
    return Mark(words % {"day": formats.short_day(timezone.localtime(at).date())}, tone, formats.when(at))


def row_of(memory: Memory, filters: MemoryFilters, now: datetime, *, tags_shown: int = ROW_TAGS) -> MemoryRow:
    """Return a memory as a row of the list that `filters` stand for."""
    names = tag_names(memory)
    path = reverse("memories")
    sid = memory.session.sid if memory.session else ""
    text = getattr(memory, "excerpt", None) or memory.content
    day = timezone.localtime(memory.created_at).date()
    return MemoryRow(
        id=memory.public_id,
        url=memory_url(memory.public_id),
        excerpt=clip(f"{memory.subject}: {text}" if memory.subject else text),
        scope=scope_links(memory, filters, path),
        session=sid if len(sid) <= 12 else f"{sid[:8]}…",
        session_url=session_url(sid, memory.event_id) if sid else "",
        born=formats.short_day(day) if day.year == timezone.localtime(now).year else formats.day(day),
        tags=tag_links(names[:tags_shown], filters, path),
        more_tags=max(0, len(names) - tags_shown),
        marks=marks_of(memory, now),
        pinned=memory.pinned,
        importance=memory.importance,
        strength=live_strength(memory, now),
        fate=fate_of(memory, now),
        recalled=memory.access_count,
        recalled_title=recalled_title(memory),
        changed_at=memory.content_changed_at,
        version=memory.version,
        is_quiet=memory.state in (MemoryState.ARCHIVED, MemoryState.FORGOTTEN) or memory.superseded_at is not None,
        edit_url=_list_url(filters, path, ("edit", memory.public_id)),
        row_url=_list_url(filters, path, ("row", memory.public_id)),
        edit_row_url=_list_url(filters, path, ("row", memory.public_id), ("edit", memory.public_id)),
    )


def editing(row: MemoryRow, content: str) -> MemoryRow:
    """Return the row with its text opened for editing."""
    lines = min(14, max(3, content.count("\n") + 1 + len(content) // 90))
    return replace(row, editing=True, content=content, lines=lines)


def _list_url(filters: MemoryFilters, path: str, *extra: tuple[str, str]) -> str:
    return f"{path}?{filters.query_string(extra)}"


def recalled_title(memory: Memory) -> str:
    """Return how often and when an agent last recalled it."""
    if not memory.access_count:
        return _("No agent has recalled it yet.")
    times = ngettext("Recalled %(n)s time", "Recalled %(n)s times", memory.access_count) % {
        "n": formats.count(memory.access_count)
    }
    return f"{times}, {formats.ago(memory.last_accessed_at)}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A label with a text, a link or a moment."""

    label: Any
    text: str = ""
    url: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FacetValue:
    """A value to filter by."""

    label: str
    url: str
    count: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class FacetMenu:
    """A dimension to filter by, with its values."""

    name: str
    title: Any
    values: list[FacetValue] = field(default_factory=list)
    chosen: bool = False
    note: str = ""
