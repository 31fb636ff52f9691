"""The menus above the list of memories: each value of a dimension with how many memories have it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from memoryhub.common.keyset import COUNT_CAP
from memoryhub.long_term_memory.queries.memories import Facet, Facets, MemoryFilter
from memoryhub.long_term_memory.queries.page_facets import count_facets
from memoryhub.web import formats
from memoryhub.web.memory_filters import CHOICES, PERIODS, VIEWS, MemoryFilters, narrow
from memoryhub.web.memory_rows import FacetMenu, FacetValue
from memoryhub.workspaces.models import Workspace

# filter -> its list in the room's answer
_LISTS = {
    "agent": "agents",
    "user": "users",
    "project": "projects",
    "kind": "kinds",
    "tag": "tags",
    "state": "states",
    "trust": "trusts",
}


@dataclass(frozen=True, slots=True)
class FacetPanel:
    """All menus, how many memories match, and the tags that exist among them."""

    menus: list[FacetMenu]
    matched: int
    more: bool
    pks: list[int]  # the rows that match, where there are not more
    tags: list[str]


def list_facets(workspace: Workspace, filters: MemoryFilters, wanted: MemoryFilter, now: datetime) -> FacetPanel:
    """Count the values of every dimension under the filters in force; a dimension's own choice does not hide its other values."""
    here = count_facets(workspace, wanted)
    menus = [_menu(workspace, filters, name, here, wanted, now) for name in _LISTS]
    tags = [facet.value for facet in here.tags]
    return FacetPanel([*menus, _periods(filters)], here.matched, here.more, here.pks, tags)


def _menu(
    workspace: Workspace, filters: MemoryFilters, name: str, here: Facets, wanted: MemoryFilter, now: datetime
) -> FacetMenu:
    chosen = getattr(filters, name)
    facets = here
    if chosen and name != "tag":
        wider = replace(narrow(workspace, filters.without(name), now).wanted, met=wanted.met)
        facets = count_facets(workspace, wider, with_tags=False)
    values: Sequence[Facet] = getattr(facets, _LISTS[name])
    note = _("Counted over %(n)s of the matches.") % {"n": formats.count(COUNT_CAP)} if facets.more else ""
    return FacetMenu(name, _title(name), [_value(filters, name, facet) for facet in values], bool(chosen), note)


def _title(name: str) -> str:
    return {
        "agent": _("Agent"),
        "user": _("User"),
        "project": _("Project"),
        "kind": pgettext("kind of memory", "Kind"),
        "tag": _("Tag"),
        "state": _("State"),
        "trust": _("Trust"),
    }[name]


def _value(filters: MemoryFilters, name: str, facet: Facet) -> FacetValue:
    current = getattr(filters, name)
    chosen = facet.value in current if name == "tag" else facet.value == current
    if name == "tag":
        wanted: object = tuple(tag for tag in current if tag != facet.value) if chosen else (*current, facet.value)
    else:
        wanted = "" if chosen else facet.value
    label = str(CHOICES[name][facet.value]) if name in CHOICES else facet.value
    count = f"{formats.count(facet.count)}+" if facet.more else formats.count(facet.count)
    return FacetValue(label, filters.url(reverse("memories"), **{name: wanted}), count, chosen)


def _periods(filters: MemoryFilters) -> FacetMenu:
    values = []
    for name, (_days, label) in PERIODS.items():
        chosen = filters.created == name
        url = filters.url(reverse("memories"), created="" if chosen else name, since="", until="")
        values.append(FacetValue(str(label), url, chosen=chosen))
    return FacetMenu(
        "created", pgettext("facet", "Created"), values, bool(filters.created or filters.since or filters.until)
    )


def list_views(filters: MemoryFilters) -> list[FacetValue]:
    """Return ready-made lists: what fades, what nobody uses, what harms, what is pinned, what is in the trash."""
    path = reverse("memories")
    views = [
        FacetValue(
            str(label), filters.url(path, view="" if filters.view == name else name), chosen=filters.view == name
        )
        for name, label in VIEWS.items()
    ]
    in_trash = filters.state == "forgotten"
    return [
        *views,
        FacetValue(_("In the trash"), filters.url(path, state="" if in_trash else "forgotten"), chosen=in_trash),
    ]
