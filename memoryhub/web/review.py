"""The review inbox: questions that only a person can answer, one key each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.dateparse import parse_date
from django.utils.timezone import make_aware
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext, pgettext_lazy
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.duplicates import DiffPart
from memoryhub.long_term_memory.models import Memory, ReviewItem, ReviewKind
from memoryhub.long_term_memory.queries import review as queries
from memoryhub.long_term_memory.services.editing import last_change_set
from memoryhub.long_term_memory.services.reviewing import decide_review
from memoryhub.web import formats, memory_rows, paging, undo
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.login import next_path
from memoryhub.web.memory_actions import writer_of
from memoryhub.web.memory_filters import MemoryFilters
from memoryhub.web.memory_rows import MemoryRow, session_url
from memoryhub.web.memory_versions import compare

NEWEST_FIRST: paging.Order = (("created_at", "desc"), ("id", "desc"))
PAGE_ITEMS = 15
SHOWN_CHARS = 4_000
LEAST_ALIKE = 0.4  # share of unchanged text from which a word diff helps
KIND_TABS: dict[str, Any] = {
    "duplicate": gettext_lazy("Near duplicates"),
    "contradiction": gettext_lazy("Contradictions"),
    "quarantined": gettext_lazy("Quarantined"),
    "extracted": gettext_lazy("Extracted"),
    "fading": gettext_lazy("Fading but important"),
}
QUESTIONS: dict[str, Any] = {
    "duplicate": gettext_lazy("Do these two say the same?"),
    "contradiction": gettext_lazy("Which of these two holds?"),
    "quarantined": gettext_lazy("It was stored but no agent is told it. May it be?"),
    "extracted": gettext_lazy("Found in a session. Is it worth remembering?"),
    "fading": gettext_lazy("It is important but nobody uses it. Keep it?"),
}
FLAGS: dict[str, Any] = {
    "instruction_like": gettext_lazy("reads like instructions to an agent"),
    "secrets_redacted": gettext_lazy("held a secret, which was taken out"),
    "unknown_agent": gettext_lazy("written by an agent that the workspace does not know"),
    "too_many_writes": gettext_lazy("one of very many writes in a short time"),
}
# kind -> (decision, label, key): the first is the accepting one, and `x` always refuses.
BUTTONS: dict[str, tuple[tuple[str, Any, str], ...]] = {
    "duplicate": (
        ("accept", gettext_lazy("Merge them"), "a"),
        ("keep_new", gettext_lazy("Keep the newer"), ""),
        ("keep_old", gettext_lazy("Keep the older"), ""),
        ("reject", gettext_lazy("Keep both"), "x"),
    ),
    "contradiction": (
        ("keep_new", gettext_lazy("The newer holds"), "a"),
        ("keep_old", gettext_lazy("The older holds"), ""),
        ("keep_both", gettext_lazy("Both, one after the other"), ""),
        ("reject", gettext_lazy("No contradiction"), "x"),
    ),
    "quarantined": (("accept", gettext_lazy("Trust it"), "a"), ("reject", gettext_lazy("Forget it"), "x")),
    "extracted": (("accept", gettext_lazy("Remember it"), "a"), ("reject", pgettext_lazy("review", "Drop it"), "x")),
    "fading": (
        ("accept", gettext_lazy("Pin it"), "a"),
        ("restore", gettext_lazy("Start its curve anew"), ""),
        ("reject", gettext_lazy("Let it fade"), "x"),
        ("forget", gettext_lazy("Forget it now"), ""),
    ),
}
DONE: dict[str, Any] = {
    "accept": gettext_lazy("Accepted."),
    "reject": gettext_lazy("Rejected."),
    "merge": gettext_lazy("Merged."),
    "keep_new": gettext_lazy("The newer one stays."),
    "keep_old": gettext_lazy("The older one stays."),
    "keep_both": gettext_lazy("Both stay."),
    "restore": gettext_lazy("Its curve starts anew."),
    "forget": gettext_lazy("Moved to the trash."),
}


@dataclass(frozen=True, slots=True)
class Question:
    """One item of the inbox as the page shows it."""

    id: str
    kind: str
    kind_label: Any
    question: Any
    asked_at: datetime
    similarity: str
    buttons: list[tuple[str, Any, str]]
    memory: MemoryRow | None = None
    text: str = ""
    other: MemoryRow | None = None
    other_text: str = ""
    diff: list[DiffPart] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    candidate: Mapping[str, Any] | None = None
    source_url: str = ""
    asks_date: str = ""


@require_GET
@member("viewer")
def review(request: MemberRequest) -> HttpResponse:
    """The inbox, one page of it, by kind."""
    workspace = request.principal.workspace
    kind = request.GET.get("kind", "")
    kind = kind if kind in ReviewKind.values else ""
    counts = queries.count_open_by_kind(workspace)
    page = paging.page_of(
        request, queries.list_review_items(workspace, kind=kind or None), order=NEWEST_FIRST, limit=PAGE_ITEMS
    )
    now = clock.now()
    context = {
        "questions": [_question(item, now) for item in page.items],
        "page": page,
        **_waiting(counts, kind),
        "may_edit": request.principal.role in ("editor", "admin"),
    }
    return render(request, "long_term_memory/review.html", context)


def _waiting(counts: dict[str, int], kind: str) -> dict[str, Any]:
    """How many questions wait, in all and by kind."""
    count = sum(counts.values())
    return {"tabs": _tabs(counts, kind), "waiting": count, "waiting_text": formats.capped_count(count)}


def _tabs(counts: dict[str, int], kind: str) -> list[tuple[str, str, bool]]:
    everything = f"{pgettext('review', 'All')} {formats.capped_count(sum(counts.values()))}"
    tabs = [(reverse("review"), everything, not kind)]
    for name, label in KIND_TABS.items():
        tabs.append(
            (
                f"{reverse('review')}?{urlencode({'kind': name})}",
                f"{label} {formats.capped_count(counts.get(name, 0))}",
                kind == name,
            )
        )
    return tabs


def _question(item: ReviewItem, now: datetime) -> Question:
    memory, other = item.memory, item.other
    pair = memory is not None and other is not None
    candidate = item.candidate if isinstance(item.candidate, dict) else None
    return Question(
        id=item.public_id,
        kind=item.kind,
        kind_label=KIND_TABS[item.kind],
        question=QUESTIONS[item.kind],
        asked_at=item.created_at,
        similarity=formats.percent(item.score, 0) if pair and 0 < item.score <= 1 else "",
        buttons=list(BUTTONS[item.kind]),
        memory=_row(memory, now),
        text=memory_rows.clip(memory.content, SHOWN_CHARS) if memory else "",
        other=_row(other, now),
        other_text=memory_rows.clip(other.content, SHOWN_CHARS) if other else "",
        diff=_diff(other, memory) if memory is not None and other is not None else [],
        flags=[str(FLAGS.get(flag, flag)) for flag in memory.flags] if memory else [],
        candidate=_candidate(candidate),
        source_url=session_url(str(candidate["session"]), str(candidate.get("event") or ""))
        if candidate and candidate.get("session")
        else "",
        asks_date=memory.created_at.date().isoformat() if memory and item.kind == ReviewKind.CONTRADICTION else "",
    )


def _diff(older: Memory, newer: Memory) -> list[DiffPart]:
    """Word by word where the two have much in common; two different sentences are read better as they are."""
    parts = compare(older.content, newer.content)
    alike = sum(len(part.text) for part in parts if part.kind == "same")
    if alike < LEAST_ALIKE * max(1, min(len(older.content), len(newer.content), SHOWN_CHARS)):
        return [DiffPart("same", memory_rows.clip(newer.content, SHOWN_CHARS))]
    return parts


def _row(memory: Memory | None, now: datetime) -> MemoryRow | None:
    return memory_rows.row_of(memory, MemoryFilters(), now) if memory else None


def _candidate(candidate: dict[str, Any] | None) -> Mapping[str, Any] | None:
    if candidate is None:
        return None
    scope = candidate.get("scope") or {}
    return {
        "content": memory_rows.clip(str(candidate.get("content", "")), SHOWN_CHARS),
        "scope": " · ".join(str(value) for value in scope.values() if value),
        "tags": [str(tag) for tag in candidate.get("tags") or ()],
        "importance": candidate.get("importance"),
    }


@require_POST
@member("editor")
def decide(request: MemberRequest, public_id: str) -> HttpResponse:
    """Carry out what a person decided; htmx gets the place of the item emptied, with an undo."""
    decision = request.POST.get("decision", "")
    started = clock.now()
    try:
        item = decide_review(
            writer=writer_of(request), review_id=public_id, decision=decision, options=_options(request)
        )
    except (errors.Conflict, errors.Invalid, errors.NotFound) as error:
        if wants_part(request):
            return render(
                request, "long_term_memory/review.html#refused", {"problem": error.detail}, status=error.status
            )
        raise
    done, change_set = str(DONE.get(decision, _("Done."))), _undoable(item, started)
    back = next_path(request, reverse("review"))
    if wants_part(request):
        counts = queries.count_open_by_kind(request.principal.workspace)
        kind = QueryDict(urlsplit(back).query).get("kind", "")
        context = {"done": done, "undo": change_set, "next": back, **_waiting(counts, kind)}
        return render(request, "long_term_memory/review.html#decided", context)
    undo.offer(request, done, change_set)
    return redirect(back)


def _options(request: MemberRequest) -> dict[str, Any]:
    """What a decision may bring along: an edited candidate, or from when the newer of two facts holds."""
    options: dict[str, Any] = {}
    content = request.POST.get("content", "").replace("\r\n", "\n")
    if content.strip():
        options["content"] = content
    day = request.POST.get("valid_from", "")
    try:
        found = parse_date(day)
    except ValueError:
        found = None
    if found is not None:
        options["valid_from"] = make_aware(datetime(found.year, found.month, found.day))  # noqa: DTZ001  made aware in the viewer's zone
    return options


def _undoable(item: ReviewItem, started: datetime) -> str:
    """Return the change set that the decision made, or nothing where it only closed the question."""
    for memory in (item.memory, item.other):
        if memory is None:
            continue
        memory.refresh_from_db()
        change_set = last_change_set(memory)
        if change_set is not None and change_set.created_at >= started:
            return change_set.public_id
    return ""
