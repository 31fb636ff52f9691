"""What the memories page is filtered by: read from an address, written back into one, shown as chips."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Kind, MemoryState, Trust
from memoryhub.long_term_memory.queries import page_rows
from memoryhub.long_term_memory.queries.memories import NEVER_RECALLED_DAYS, MemoryFilter
from memoryhub.web import formats
from memoryhub.workspaces.models import Workspace

MAX_TEXT = 500
MAX_TAGS = 20
DEFAULT_SORT = "recency"
SORTS = ("recency", "importance", "strength", "created", "accessed")
VIEWS: dict[str, Any] = {
    "fading-week": gettext_lazy("Fading this week"),
    "pinned": gettext_lazy("Pinned"),
    "unused": gettext_lazy("Not recalled in 90 days"),
    "harmful": gettext_lazy("Often recalled, rated harmful"),
}
PERIODS: dict[str, tuple[int, Any]] = {
    "1d": (1, gettext_lazy("Last 24 hours")),
    "7d": (7, gettext_lazy("Last 7 days")),
    "30d": (30, gettext_lazy("Last 30 days")),
    "90d": (90, gettext_lazy("Last 90 days")),
}
LABELS: dict[str, Any] = {
    "agent": gettext_lazy("agent"),
    "user": gettext_lazy("user"),
    "project": gettext_lazy("project"),
    "kind": pgettext_lazy("kind of memory", "kind"),
    "tag": gettext_lazy("tag"),
    "state": gettext_lazy("state"),
    "trust": gettext_lazy("trust"),
    "session": gettext_lazy("session"),
    "created": gettext_lazy("created"),
    "since": gettext_lazy("since"),
    "until": gettext_lazy("until"),
    "view": gettext_lazy("list"),
}
CHOICES: dict[str, dict[str, Any]] = {
    "kind": dict(Kind.choices),
    "state": dict(MemoryState.choices),
    "trust": dict(Trust.choices),
    "created": {name: label for name, (_days, label) in PERIODS.items()},
    "view": VIEWS,
}


@dataclass(frozen=True, slots=True)
class Chip:
    """One filter in force, with the address that takes it away."""

    label: str
    value: str
    url: str


@dataclass(frozen=True, slots=True)
class MemoryFilters:
    """The filters in force. Empty values filter nothing; names that don't exist are dropped when they are read."""

    q: str = ""
    agent: str = ""
    user: str = ""
    project: str = ""
    kind: str = ""
    tag: tuple[str, ...] = ()
    state: str = ""
    trust: str = ""
    session: str = ""
    created: str = ""
    since: str = ""
    until: str = ""
    view: str = ""
    sort: str = DEFAULT_SORT
    ascending: bool = False

    @classmethod
    def read(cls, query: QueryDict) -> "MemoryFilters":
        """Return the filters of an address; what makes no sense there filters nothing."""
        texts = {name: clean_text(query.get(name, "")) for name in ("q", "agent", "user", "project", "session")}
        chosen = {name: value for name in CHOICES if (value := query.get(name, "")) in CHOICES[name]}
        days = {name: day.isoformat() for name in ("since", "until") if (day := _day(query.get(name, "")))}
        tags = tuple(dict.fromkeys(tag for raw in query.getlist("tag")[:MAX_TAGS] if (tag := clean_text(raw))))
        sort = query.get("sort", "")
        return cls(
            **texts,
            **chosen,
            **days,
            tag=tags,
            sort=sort if sort in SORTS else DEFAULT_SORT,
            ascending=query.get("dir") == "asc",
        )

    @classmethod
    def of_url(cls, url: str) -> "MemoryFilters":
        """Return the filters that an address of the list carries."""
        return cls.read(QueryDict(urlsplit(url).query))

    def pairs(self) -> list[tuple[str, str]]:
        """Return names and values as an address has them: only what differs from the default."""
        plain = [(name, getattr(self, name)) for name in _PLAIN if getattr(self, name)]
        tags = [("tag", tag) for tag in self.tag]
        sort = [("sort", self.sort)] if self.sort != DEFAULT_SORT else []
        return [*plain, *tags, *sort, *([("dir", "asc")] if self.ascending else [])]

    def query_string(self, extra: Iterable[tuple[str, str]] = ()) -> str:
        """Return the part of an address behind the question mark."""
        query = QueryDict(mutable=True)
        for name, value in (*self.pairs(), *extra):
            query.appendlist(name, value)
        return query.urlencode()

    def url(self, path: str, **changes: Any) -> str:
        """Return the list's address with some filters changed."""
        text = (replace(self, **changes) if changes else self).query_string()
        return f"{path}?{text}" if text else path

    def without_order(self) -> "MemoryFilters":
        """Return the filters alone: which memories, not how they are sorted."""
        return replace(self, sort=DEFAULT_SORT, ascending=False)

    def without(self, name: str) -> "MemoryFilters":
        """Return the filters without one dimension."""
        emptied: Any = () if name == "tag" else ""
        return replace(self, **{name: emptied})

    @property
    def narrows(self) -> bool:
        """Tell whether anything is filtered."""
        return self.without_order() != MemoryFilters()

    def chips(self, path: str) -> list[Chip]:
        """Return what is in force, each with the address without it."""
        out = []
        for name in LABELS:
            if name == "tag":
                out += [
                    Chip(str(LABELS[name]), tag, self.url(path, tag=tuple(t for t in self.tag if t != tag)))
                    for tag in self.tag
                ]
            elif value := getattr(self, name):
                out.append(Chip(str(LABELS[name]), self._shown(name, value), self.url(path, **{name: ""})))
        return out

    def _shown(self, name: str, value: str) -> str:
        if name in CHOICES:
            return str(CHOICES[name][value])
        return formats.day(date.fromisoformat(value)) if name in ("since", "until") else value

    def created_since(self, now: datetime) -> datetime | None:
        """Return the moment from which memories must have been created, in the viewer's zone."""
        bounds = [_midnight(date.fromisoformat(self.since))] if self.since else []
        if self.created:
            bounds.append(now - timedelta(days=PERIODS[self.created][0]))
        return max(bounds, default=None)

    def created_until(self) -> datetime | None:
        """Return the moment before which memories must have been created: the end of the day that `until` names."""
        return _midnight(date.fromisoformat(self.until) + timedelta(days=1)) if self.until else None


FADING_SOON_DAYS = 7
OUT_OF_TRASH = (MemoryState.ACTIVE, MemoryState.FADING, MemoryState.ARCHIVED)


def room_filter(filters: MemoryFilters, now: datetime) -> MemoryFilter:
    """Return what the room understands: the same filters, in its words."""
    view = filters.view
    states = [filters.state] if filters.state else [MemoryState.ACTIVE] if view == "fading-week" else list(OUT_OF_TRASH)
    return MemoryFilter(
        scope=ScopeNames(filters.agent or None, filters.user or None, filters.project or None),
        tags=filters.tag,
        kinds=[filters.kind] if filters.kind else [],
        states=states,
        trusts=[filters.trust] if filters.trust else [],
        session=filters.session or None,
        since=filters.created_since(now),
        until=filters.created_until(),
        pinned=True if view == "pinned" else None,
        fades_before=now + timedelta(days=FADING_SOON_DAYS) if view == "fading-week" else None,
        never_recalled_since=now - timedelta(days=NEVER_RECALLED_DAYS) if view == "unused" else None,
        rated_harmful=view == "harmful",
    )


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The filters in the room's words; with a query also the ids that it found, best first, and notes about the search."""

    wanted: MemoryFilter
    ranked: list[str] | None = None
    notes: tuple[str, ...] = ()


def narrow(workspace: Workspace, filters: MemoryFilters, now: datetime) -> Narrowed:
    """Return which memories the filters mean; a query is searched for inside them."""
    wanted = room_filter(filters, now)
    if not filters.q:
        return Narrowed(wanted)
    found = page_rows.find_ids(workspace, filters.q, wanted, now)
    return Narrowed(replace(wanted, ids=found.ids), found.ids, tuple(found.notes))


_PLAIN = [field.name for field in fields(MemoryFilters) if field.name not in ("tag", "sort", "ascending")]


def clean_text(value: str) -> str:
    """Return a typed text as a filter takes it: without NUL and blanks around it, not endless."""
    return value.replace("\0", "").strip()[:MAX_TEXT]


def _day(value: str) -> date | None:
    try:
        found = date.fromisoformat(value)
    except ValueError:
        return None
    return found if date(1970, 1, 1) <= found <= date(2999, 12, 31) else None


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def describe(filters: MemoryFilters) -> str:
    """Return the filters in words, for a preview: agent reviewer, tag style."""
    words = [f"{chip.label} {chip.value}" for chip in filters.chips("")]
    if filters.q:
        words.insert(0, _("found for “%(query)s”") % {"query": filters.q})
    return ", ".join(words) or _("all memories outside the trash")
