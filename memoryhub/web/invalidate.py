"""Invalidate: what exactly would go, then do it; and the log of what went, why, and by whom."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext_lazy
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import errors
from memoryhub.flows.invalidate import announce
from memoryhub.invalidation import queries
from memoryhub.invalidation.domain.selector import EmptySelector, Selector
from memoryhub.invalidation.models import InvalidationRecord
from memoryhub.invalidation.services import Announcement
from memoryhub.session_cache.queries import tool_results
from memoryhub.session_cache.queries.pages import get_doubt
from memoryhub.web import formats, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.change_words import door_label
from memoryhub.web.htmx import wants_part
from memoryhub.web.session_words import strategy_label
from memoryhub.web.tidy_urls import tidied
from memoryhub.web.tool_cache import EntryRow, entry_row

NEWEST_FIRST: paging.Order = (("created_at", "desc"), ("id", "desc"))
FIELDS = {
    "tool": (gettext_lazy("Tool"), gettext_lazy("Exact; read_* is a family.")),
    "session": (gettext_lazy("Session"), gettext_lazy("The session's own id.")),
    "tag": (gettext_lazy("Tag"), gettext_lazy("Results that depend on this tag.")),
    "path": (gettext_lazy("Path"), gettext_lazy("This file, everything below this folder, and listings above it.")),
    "event": (gettext_lazy("Event"), gettext_lazy("Results seen at this event of a session.")),
    "key": (pgettext_lazy("of a cached result", "Key"), gettext_lazy("One entry, by its whole key.")),
}
SELECTOR_WORDS = {
    **{name: label for name, (label, _help) in FIELDS.items()},
    "params_hash": gettext_lazy("Parameters"),
    "tool_or_tag": gettext_lazy("Tool or tag"),
    "unknown_write": gettext_lazy("Unknown write"),
}
SHOWN = 20


class NothingNamed(errors.Invalid):
    slug = "empty-selector"
    title = "An invalidation needs a selector"


@dataclass(frozen=True, slots=True)
class LogRow:
    """One line of the log as it is shown."""

    selector: list[tuple[Any, str]]
    reason: str
    strategy: str
    by: str
    door: str
    invalidated: int
    created_at: Any


def _given(values: Any) -> dict[str, str]:
    given = {name: values.get(name, "").strip()[:2000] for name in FIELDS}
    return {name: value for name, value in given.items() if value}


def _selector(given: dict[str, str]) -> Selector | None:
    try:
        return Selector(**given)
    except EmptySelector:
        return None


@require_GET
@member("viewer")
@tidied
def invalidate(request: MemberRequest) -> HttpResponse:
    """The form; below it what the selectors in the address would drop; below that the log."""
    workspace = request.principal.workspace
    given = _given(request.GET)
    selector = _selector(given)
    page = paging.page_of(request, queries.list_invalidations(workspace), order=NEWEST_FIRST, limit=25)
    context: dict[str, Any] = {
        "fields": [(name, label, help_text, given.get(name, "")) for name, (label, help_text) in FIELDS.items()],
        "given": list(given.items()),
        "rows": [_log_row(record) for record in page.items],
        "page": page,
        "may_edit": request.principal.role in ("editor", "admin"),
        "has_preview": selector is not None,
    }
    if selector is not None:
        context |= _preview(request, selector)
    part = "session_cache/invalidate.html#log" if wants_part(request) else "session_cache/invalidate.html"
    return render(request, part, context)


def _preview(request: MemberRequest, selector: Selector) -> dict[str, Any]:
    touched = tool_results.select(request.principal.workspace, selector).defer("value").select_related("session")
    doubt = get_doubt(request.principal.workspace)
    shown: list[EntryRow] = [entry_row(entry, doubt) for entry in touched.order_by("-id")[:SHOWN]]
    count = len(shown) if len(shown) < SHOWN else touched.count()
    return {"touched": shown, "count": count, "hidden": max(0, count - len(shown))}


def _log_row(record: InvalidationRecord) -> LogRow:
    return LogRow(
        selector=[(SELECTOR_WORDS.get(name, name), str(value)) for name, value in record.selector.items()],
        reason=record.reason,
        strategy=strategy_label(record.strategy),
        by=record.actor_label,
        door=door_label(record.door),
        invalidated=record.invalidated,
        created_at=record.created_at,
    )


@require_POST
@member("editor")
def run(request: MemberRequest) -> HttpResponse:
    """Invalidate what the preview showed (and what has joined it since)."""
    selector = _selector(_given(request.POST))
    if selector is None:
        raise NothingNamed(_("Name at least one thing: nothing selects nothing."))
    change = Announcement(
        selector,
        request.principal.actor,
        reason=request.POST.get("reason", "").strip()[:500],
        strategy="event" if selector.path else "dependency" if selector.tag else "manual",
        door="web",
    )
    outcome = announce(workspace=request.principal.workspace, announcement=change)
    text = ngettext("%(count)s result was invalidated.", "%(count)s results were invalidated.", outcome.invalidated)
    messages.success(request, text % {"count": formats.count(outcome.invalidated)})
    return redirect("invalidate")
