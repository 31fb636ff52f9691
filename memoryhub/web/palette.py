"""Ctrl-K: pages, actions, memories and sessions whose words match what was typed."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from memoryhub.web import palette_rows
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.context import MENU

PER_GROUP = 6
MAX_QUERY_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the palette."""

    label: str
    url: str
    note: str = ""


MORE_PAGES: tuple[tuple[str, Any], ...] = (
    ("status", gettext_lazy("Status")),
    ("connect", gettext_lazy("Connect an agent")),
    ("figures", gettext_lazy("What each figure means")),
    ("account", gettext_lazy("Account")),
    ("settings_keys", gettext_lazy("API keys")),
    ("settings_members", gettext_lazy("Members")),
    ("settings_decay", gettext_lazy("Decay policy")),
)


def _pages(wanted: str) -> list[Entry]:
    named = [(name, label, title) for _slug, title, items in MENU for name, label, _icon in items]
    named += [(name, label, "") for name, label in MORE_PAGES]
    found = []
    for name, label, title in named:
        with translation.override("en"):
            english = str(label).casefold()
        if wanted in str(label).casefold() or wanted in english:
            found.append(Entry(str(label), reverse(name), str(title)))
    return found


@require_GET
@member("viewer")
def palette(request: MemberRequest) -> HttpResponse:
    """Answer the list for what was typed; an empty query lists the pages."""
    typed = request.GET.get("q", "")[:MAX_QUERY_CHARACTERS].replace("\0", "").strip()
    groups: list[tuple[str, list[Entry]]] = [(_("Pages"), _pages(typed.casefold()))]
    if typed:
        rows = palette_rows.find(request.principal.workspace, typed, PER_GROUP)
        groups += [(label, [Entry(*row) for row in found]) for label, found in rows]
    return render(request, "hub/palette.html", {"groups": [group for group in groups if group[1]]})
