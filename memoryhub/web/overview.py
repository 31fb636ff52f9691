"""The first page: how the three layers are today and over the last week, and what agents, people and jobs wrote."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.queries import count_change_sets_after, list_change_sets
from memoryhub.common import clock
from memoryhub.long_term_memory.queries.changes import list_excerpts_of_changes
from memoryhub.web import formats, overview_figures
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.change_words import actor_label, describe_action, door_label
from memoryhub.web.htmx import wants_part

FEED_ROWS = 12
REFRESH_SECONDS = 20  # where no stream tells of news


@require_GET
@member("viewer")
def overview(request: MemberRequest) -> HttpResponse:
    """Show the figures and the feed; the feed alone for htmx."""
    workspace = request.principal.workspace
    if wants_part(request) and request.htmx.target == "feed":
        return render(request, "hub/overview.html#feed", _feed(request))
    layers = overview_figures.summarize(workspace, clock.now())
    context = {**_feed(request), "layers": layers, "is_new": all(layer.is_empty for layer in layers)}
    return render(request, "hub/overview.html", context)


@require_GET
@member("viewer")
def feed_news(request: MemberRequest) -> HttpResponse:
    """Say how many change sets came since the newest one on the page; it never moves what is being read."""
    after = request.GET.get("after", "")
    new = count_change_sets_after(request.principal.workspace, after[:32])
    return render(
        request, "hub/overview.html#news", {"new": new, "after": after[:32], "refresh_seconds": REFRESH_SECONDS}
    )


def _feed(request: MemberRequest) -> dict[str, Any]:
    rows = list_change_sets(request.principal.workspace).order_by("-created_at", "-id")[:FEED_ROWS]
    texts = list_excerpts_of_changes(list(rows))
    entries = [_entry(change_set, texts.get(change_set.pk, "")) for change_set in rows]
    return {"feed": entries, "after": entries[0]["id"] if entries else "", "refresh_seconds": REFRESH_SECONDS, "new": 0}


def _entry(change_set: ChangeSet, text: str) -> dict[str, Any]:
    count = change_set.subject_count
    return {
        "id": change_set.public_id,
        "who": actor_label(change_set.actor_kind, change_set.actor_label),
        "what": describe_action(change_set.action),
        "how_many": _("%(n)s at once") % {"n": formats.count(count)} if count > 1 else "",
        "door": door_label(change_set.door),
        "reason": change_set.reason,
        "text": text,
        "at": change_set.created_at,
    }
