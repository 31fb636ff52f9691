"""What every page's frame shows: the menu with its counts, the workspaces, the viewer.

The counts are made for each page, up to a cap: what a person or an agent just did shows at once.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject, cached_property
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from memoryhub.flows.demo.mark import is_demo
from memoryhub.web import access, formats, menu_counts
from memoryhub.workspaces.models import Role
from memoryhub.workspaces.queries import list_workspaces_of

# (url name, label, icon); the path of a page decides which item is current.
_Item = tuple[str, Any, str]
MENU: tuple[tuple[str, Any, tuple[_Item, ...]], ...] = (
    ("", "", (("overview", _("Overview"), "overview"),)),
    (
        "short-term",
        _("Short term"),
        (
            ("report", _("Cost report"), "report"),
            ("doctor", _("Doctor"), "doctor"),
            ("planner", _("Planner"), "planner"),
            ("prices", _("Prices"), "prices"),
        ),
    ),
    (
        "medium-term",
        _("Medium term"),
        (
            ("sessions", _("Sessions"), "sessions"),
            ("tool_cache", _("Tool cache"), "tool-cache"),
            ("invalidate", _("Invalidate"), "invalidate"),
        ),
    ),
    (
        "long-term",
        _("Long term"),
        (
            ("memories", _("Memories"), "memories"),
            ("search", _("Search bench"), "search"),
            ("review", _("Review"), "review"),
        ),
    ),
    (
        "hub",
        pgettext_lazy("section of the menu", "Hub"),
        (
            ("changes", _("Changes"), "changes"),
            ("jobs", _("Jobs"), "jobs"),
            ("settings", _("Settings"), "settings"),
        ),
    ),
)
COUNT_MEANINGS = {
    "doctor": _("misses in the last 7 days"),
    "prices": _("models without a price"),
    "memories": _("memories"),
    "review": _("wait for review"),
    "jobs": _("jobs that need a look"),
}


@dataclass(frozen=True, slots=True)
class MenuItem:
    name: str
    label: Any
    icon: str
    url: str
    current: bool
    count: str
    count_meaning: Any


@dataclass(frozen=True, slots=True)
class MenuSection:
    slug: str
    title: Any
    items: list[MenuItem]


@dataclass(frozen=True, slots=True)
class WorkspaceChoice:
    name: str
    title: str
    current: bool


class Shell:
    """The frame of a member's page; every part is made when the template asks for it."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._principal = getattr(request, "principal", None)

    @cached_property
    def sections(self) -> list[MenuSection]:
        counts = self._counts()
        return [MenuSection(slug, title, [self._item(entry, counts) for entry in items]) for slug, title, items in MENU]

    def _item(self, entry: _Item, counts: dict[str, int]) -> MenuItem:
        name, label, icon = entry
        url = reverse(name)
        path = self._request.path
        current = path == url or (url != "/" and path.startswith(f"{url}/"))
        number = counts.get(name, 0)
        return MenuItem(
            name,
            label,
            icon,
            url,
            current,
            formats.capped_count(number) if number else "",
            COUNT_MEANINGS.get(name, ""),
        )

    def _counts(self) -> dict[str, int]:
        if self._principal is None:
            return {}
        return menu_counts.count_for_menu(self._principal.workspace)

    @property
    def workspace(self) -> WorkspaceChoice | None:
        if self._principal is None:
            return None
        return WorkspaceChoice(
            self._principal.workspace.name, self._principal.workspace.title or self._principal.workspace.name, True
        )

    @cached_property
    def workspaces(self) -> list[WorkspaceChoice]:
        if self._principal is None:
            return []
        here = self._principal.workspace.pk
        return [
            WorkspaceChoice(w.name, w.title or w.name, w.pk == here)
            for w in list_workspaces_of(self._request.user)  # type: ignore[arg-type]
        ]

    @property
    def role_label(self) -> str:
        return str(Role(self._principal.role).label) if self._principal else ""

    @property
    def may_edit(self) -> bool:
        return self._principal is not None and self._principal.role in ("editor", "admin")

    @property
    def is_admin(self) -> bool:
        return self._principal is not None and self._principal.role == "admin"

    @property
    def is_demo(self) -> bool:
        return self._principal is not None and is_demo(self._principal.workspace)

    @property
    def memories_url(self) -> str:
        return reverse("memories")

    @property
    def search_url(self) -> str:
        return reverse("search")


def csp_nonce(request: HttpRequest) -> dict[str, Any]:
    """django-htmx and our templates read the nonce by this name; made only when a template asks."""
    return {"csp_nonce": SimpleLazyObject(lambda: str(getattr(request, "csp_nonce", "")))}


def shell(request: HttpRequest) -> dict[str, Any]:
    """The frame and the viewer, for every template."""
    viewer = getattr(request, "viewer", None) or access.read_viewer(request)
    return {"viewer": viewer, "shell": Shell(request), "here": place_of(request)}


def place_of(request: HttpRequest) -> str:
    """Return the address that shows this page again, for forms that come back to it.

    A page that answers a POST has none: it is the one that the form stood on. A view that knows better puts its own `here`
    into the context.
    """
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    try:
        came_from = urlsplit(request.headers.get("Referer", ""))
        if came_from.netloc != request.get_host():
            return "/"
    except (ValueError, DisallowedHost):  # a page that says what is wrong with the request shows that, too
        return "/"
    return came_from._replace(scheme="", netloc="", fragment="").geturl() or "/"
