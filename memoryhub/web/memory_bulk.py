"""One action for many memories: a preview of what would change, then the change with a report.

Some hundreds are previewed exactly and up to a few thousand changed at once. More than that becomes a job: the page answers
at once, the job's page shows how far it is and its report, and its change set is taken back like any other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.http import HttpResponse, HttpResponseBase, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from memoryhub.common import clock, errors
from memoryhub.common.keyset import COUNT_CAP
from memoryhub.flows.export_memories import export_memories, find_format
from memoryhub.flows.memory_jobs import leave_bulk_job
from memoryhub.interchange.formats import FORMATS
from memoryhub.long_term_memory.models import MemoryState
from memoryhub.long_term_memory.queries import page_rows
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.bulk import BulkAction, bulk_edit, check_bulk
from memoryhub.long_term_memory.services.writer import BulkResult
from memoryhub.web import formats, memory_rows, undo
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.forms.memories import split_tags
from memoryhub.web.memories import BULK_ACTIONS
from memoryhub.web.memory_actions import writer_of
from memoryhub.web.memory_filters import MemoryFilters, describe, narrow
from memoryhub.web.tidy_urls import tidied

CHANGED_AT_ONCE = 2_000  # in about a second; more is a job
TRIED = 300  # memories up to which a preview does the change and takes it back, to say exactly what it would do
MAX_PICKED = 200
SAMPLE_ROWS = 8
LISTED = 50


class BadAction(errors.Invalid):
    slug = "bad-bulk-action"
    title = "This can't be done to many memories"


@dataclass(frozen=True, slots=True)
class BulkRequest:
    """Which memories and what to do, as an address or a form says it."""

    filters: MemoryFilters
    picked: tuple[str, ...]
    action: str
    value: str

    @classmethod
    def read(cls, query: QueryDict) -> "BulkRequest":
        """Return what is asked for; BadAction where it is not one of the actions."""
        action = query.get("action", "")
        if action not in BULK_ACTIONS:
            raise BadAction(_("Choose one of the actions in the list."))
        picked = tuple(dict.fromkeys(query.getlist("id")))
        if len(picked) > MAX_PICKED:
            raise BadAction(_("Select at most %(n)s rows, or none to mean all that match.") % {"n": MAX_PICKED})
        return cls(MemoryFilters.read(query), picked, action, query.get("value", "").strip()[:500])

    def wanted(self, request: MemberRequest) -> MemoryFilter:
        """Return the filter; with picked rows just those, whatever state they are in."""
        if self.picked:
            return MemoryFilter(ids=self.picked, states=list(MemoryState.values))
        wanted = narrow(request.principal.workspace, self.filters, clock.now()).wanted
        if self.action == "restore" and not self.filters.state:
            return replace(wanted, states=[MemoryState.FORGOTTEN, MemoryState.ARCHIVED])
        return wanted

    def pairs(self) -> list[tuple[str, str]]:
        """Return it as form fields."""
        own = [("action", self.action), ("value", self.value), *(("id", public_id) for public_id in self.picked)]
        return [*self.filters.without_order().pairs(), *own]

    def back_url(self) -> str:
        """Return the list that this came from."""
        return self.filters.url(reverse("memories"))


def read_action(name: str, value: str) -> BulkAction:
    """Return what the room shall do; BadAction where the action lacks its tag or number."""
    if name in ("add_tag", "remove_tag"):
        tags = split_tags(value)
        if not tags:
            raise BadAction(_("Say which tag."))
        return BulkAction(add_tags=tags) if name == "add_tag" else BulkAction(remove_tags=tags)
    if name == "importance":
        try:
            return BulkAction(importance=float(value.replace(",", ".")))
        except ValueError as error:
            raise BadAction(_("Give the importance as a number from 0 to 1.")) from error
    return {
        "pin": BulkAction(pin=True),
        "unpin": BulkAction(pin=False),
        "archive": BulkAction(archive=True),
        "forget": BulkAction(forget=True),
        "restore": BulkAction(restore=True),
    }[name]


@require_http_methods(["GET", "POST"])
@member("editor")
@tidied
def bulk_memories(request: MemberRequest) -> HttpResponseBase:
    """GET shows what would change, POST changes it; an export is answered with the file."""
    try:
        asked = BulkRequest.read(request.POST if request.method == "POST" else request.GET)
    except BadAction as error:
        return _refuse(request, error, reverse("memories"))
    wanted = asked.wanted(request)
    if asked.action == "export":
        return _export(request, asked, wanted) if request.method == "POST" else _show(request, asked, wanted, None)
    try:
        action = read_action(asked.action, asked.value)
        if request.method == "POST":
            return _change(request, asked, wanted, action)
        return _show(request, asked, wanted, _preview(request, wanted, action))
    except errors.Invalid as error:
        return _refuse(request, error, asked.back_url())


def _preview(request: MemberRequest, wanted: MemoryFilter, action: BulkAction) -> BulkResult | None:
    """What would happen, or None where so many match that only doing it would tell."""
    if page_rows.count_up_to(request.principal.workspace, wanted, TRIED) > TRIED:
        check_bulk(writer=writer_of(request), wanted=wanted, action=action)
        return None
    return bulk_edit(writer=writer_of(request), wanted=wanted, action=action, dry_run=True)


def _change(request: MemberRequest, asked: BulkRequest, wanted: MemoryFilter, action: BulkAction) -> HttpResponse:
    """Do it, or leave it to a job where it is too much for one request."""
    if page_rows.count_up_to(request.principal.workspace, wanted, CHANGED_AT_ONCE) > CHANGED_AT_ONCE:
        return redirect(
            "job", public_id=leave_bulk_job(writer=writer_of(request), wanted=wanted, action=action).public_id
        )
    return _report(request, asked, bulk_edit(writer=writer_of(request), wanted=wanted, action=action))


def _refuse(request: MemberRequest, error: errors.HubError, back_url: str) -> HttpResponse:
    context = {"problem": error.detail, "back_url": back_url, "title": _("Change many memories")}
    return render(request, "long_term_memory/bulk.html", context, status=error.status)


def _title(asked: BulkRequest) -> str:
    label = str(BULK_ACTIONS[asked.action])
    return f"{label}: {asked.value}" if asked.action in ("add_tag", "remove_tag", "importance") else label


def _show(request: MemberRequest, asked: BulkRequest, wanted: MemoryFilter, result: BulkResult | None) -> HttpResponse:
    workspace, now = request.principal.workspace, clock.now()
    matched = result.matched if result else page_rows.count_up_to(workspace, wanted, COUNT_CAP)
    sample = page_rows.list_newest(workspace, wanted, SAMPLE_ROWS)
    rest = max(0, matched - len(sample))
    which = _("the selected memories") if asked.picked else describe(asked.filters)
    context = {
        "title": _title(asked),
        "which": which,
        "matched": matched,
        "matched_text": ngettext("%(n)s memory matches", "%(n)s memories match", matched)
        % {"n": formats.capped_count(matched)},
        "changing": result.changed if result else matched,
        "changing_text": formats.capped_count(result.changed if result else matched),
        "untold": result is None,
        "by_job": result is None and matched > CHANGED_AT_ONCE,
        "unchanged": result.matched - result.changed - len(result.skipped) if result else 0,
        "skipped": _skipped(result),
        "sample": [memory_rows.row_of(memory, MemoryFilters(), now) for memory in sample],
        "rest": rest,
        "rest_text": formats.capped_count(rest),
        "pairs": asked.pairs(),
        "is_export": asked.action == "export",
        "formats": [(name, entry.title) for name, entry in FORMATS.items()],
        "dangerous": asked.action == "forget",
        "back_url": asked.back_url(),
    }
    return render(request, "long_term_memory/bulk.html", context)


def _skipped(result: BulkResult | None) -> list[dict[str, str]]:
    return [{**item, "url": memory_rows.memory_url(item["id"])} for item in (result.skipped[:LISTED] if result else ())]


def _report(request: MemberRequest, asked: BulkRequest, result: BulkResult) -> HttpResponse:
    done = ngettext("Changed %(n)s memory.", "Changed %(n)s memories.", result.changed) % {
        "n": formats.count(result.changed)
    }
    undo.offer(request, done, result.change_set.public_id if result.change_set else "")
    context = {
        "title": _title(asked),
        "done": True,
        "kpis": [
            {"label": _("Matched"), "value": formats.count(result.matched)},
            {"label": _("Changed"), "value": formats.count(result.changed)},
            {
                "label": _("As they were"),
                "value": formats.count(result.matched - result.changed - len(result.skipped)),
                "note": _("they had it already"),
            },
            {"label": _("Skipped"), "value": formats.count(len(result.skipped)), "note": _("each with its reason")},
        ],
        "skipped": _skipped(result),
        "change_url": reverse("change", args=[result.change_set.public_id]) if result.change_set else "",
        "back_url": asked.back_url(),
        "here": asked.back_url(),
    }
    return render(request, "long_term_memory/bulk.html", context)


def _export(request: MemberRequest, asked: BulkRequest, wanted: MemoryFilter) -> StreamingHttpResponse:
    format = find_format(request.POST.get("format") or "memoryhub")
    pieces: Iterator[str] = export_memories(
        workspace=request.principal.workspace,
        format=format,
        wanted=wanted,
        with_versions=bool(request.POST.get("versions")),
    )
    headers = {"Content-Disposition": f'attachment; filename="memories{format.suffix}"'}
    return StreamingHttpResponse(pieces, content_type=format.media_type, headers=headers)
