"""The hub's later work: state, progress, what waits, what is dead; run now and retry."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext
from django.views.decorators.http import require_GET, require_POST

from memoryhub.common import clock, errors
from memoryhub.jobs.handlers import HANDLERS
from memoryhub.jobs.schedule import SCHEDULE
from memoryhub.web import formats, paging
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.web.job_results import JobOutcome, describe
from memoryhub.work import queries, services
from memoryhub.work.models import Job, JobState

NEWEST_FIRST: paging.Order = (("created_at", "desc"), ("id", "desc"))
KINDS: dict[str, Any] = {
    "housekeeping": gettext_lazy("Tidy up"),
    "decay": gettext_lazy("Let memories fade"),
    "deliver_webhooks": gettext_lazy("Tell webhooks"),
    "embed_memories": gettext_lazy("Embed memories"),
    "erase": gettext_lazy("Erase"),
    "extract": gettext_lazy("Extract memories"),
    "bulk_memories": gettext_lazy("Change many memories"),
    "revert_changes": gettext_lazy("Take a change back"),
    "redraw_curves": gettext_lazy("Draw curves by the decay policy"),
    "import_transcripts": gettext_lazy("Import transcripts"),
    "import_memories": gettext_lazy("Import memories"),
    "backup": gettext_lazy("Back up"),
    "load_demo": gettext_lazy("Load the demo"),
    "reprice": gettext_lazy("Reprice"),
    "tend_ledger": gettext_lazy("Tend the ledger"),
    "find_out": gettext_lazy("Sum up waste and compare plans"),
    "diagnose": gettext_lazy("Diagnose requests"),
    "forget_bodies": gettext_lazy("Forget request bodies"),
    "sweep_tool_results": gettext_lazy("Sweep expired tool results"),
    "collect_session_garbage": gettext_lazy("Collect unused session blobs"),
}
# What a person may start by hand: kinds that need no arguments and do the same twice as once.
RUNNABLE = ("decay", "embed_memories", "sweep_tool_results", "backup", "housekeeping")
STATE_TONES = {"queued": "", "running": "accent", "failed": "warn", "done": "good", "dead": "bad"}
REFRESH_SECONDS = 3


class NotRunnable(errors.Invalid):
    slug = "not-runnable"
    title = "This kind of job can't be started by hand"


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as its row shows it."""

    public_id: str
    kind: str
    state: Any
    tone: str
    progress: float | None
    progress_text: str
    attempts: int
    created_at: Any
    took: str
    error: str
    outcome: JobOutcome
    change_set: str
    can_retry: bool
    is_open: bool


def kind_label(kind: str) -> str:
    """Return the kind of job in the viewer's words."""
    return str(KINDS.get(kind, kind.replace("_", " ")))


def _row(job: Job, may_edit: bool) -> JobRow:
    total, done = job.progress_total, job.progress_done
    ended = job.finished_at or (clock.now() if job.state == JobState.RUNNING else None)
    return JobRow(
        public_id=job.public_id,
        kind=kind_label(job.kind),
        state=JobState(job.state).label,
        tone=STATE_TONES[job.state],
        progress=min(1.0, done / total) if total and job.state == JobState.RUNNING else None,
        progress_text=f"{formats.count(done)} / {formats.count(total)}" if total else "",
        attempts=job.attempts,
        created_at=job.created_at,
        took=formats.duration(ended - job.started_at) if ended and job.started_at else "",
        error=job.error,
        outcome=describe(job.result or {}),
        change_set=str((job.result or {}).get("change_set") or ""),
        can_retry=job.state == JobState.DEAD and may_edit and job.workspace_id is not None,
        is_open=job.state in (JobState.QUEUED, JobState.RUNNING, JobState.FAILED),
    )


@require_GET
@member("viewer")
def jobs(request: MemberRequest) -> HttpResponse:
    """List the jobs; the part with the figures and rows refreshes itself while something runs."""
    workspace, may_edit = request.principal.workspace, request.principal.role in ("editor", "admin")
    rows = queries.list_jobs(workspace)
    state = request.GET.get("state", "")
    if state in JobState.values:
        rows = rows.filter(state=state)
    page = paging.page_of(request, rows, order=NEWEST_FIRST)
    queue = queries.summarize_queue(workspace)
    shown = [_row(job, may_edit) for job in page.items]
    context = {
        "rows": shown,
        "page": page,
        "kpis": _figures(queue),
        "filters": _state_filters(request, state),
        "runnable": [(kind, kind_label(kind), _period(kind)) for kind in RUNNABLE if kind in HANDLERS]
        if may_edit
        else [],
        "refresh_seconds": REFRESH_SECONDS if any(row.is_open for row in shown) else 0,
    }
    return render(request, "hub/jobs.html#rows" if wants_part(request) else "hub/jobs.html", context)


def _state_filters(request: MemberRequest, state: str) -> list[tuple[str, Any, bool]]:
    choices = [("", pgettext("jobs", "All")), *JobState.choices]
    return [(paging.url_with(request, state=value, cursor=None), label, value == state) for value, label in choices]


def _figures(queue: queries.QueueState) -> list[dict[str, Any]]:
    waits_since = queue.oldest_waiting_since
    waits = (
        _("the oldest waits for %(time)s") % {"time": formats.duration(clock.now() - waits_since)}
        if waits_since
        else ""
    )
    return [
        {"label": _("Waiting"), "value": formats.count(queue.waiting), "note": waits},
        {"label": _("Running"), "value": formats.count(queue.running)},
        {
            "label": _("Dead"),
            "value": formats.count(queue.dead),
            "note": _("gave up after several attempts") if queue.dead else "",
            "tone": "down" if queue.dead else "",
        },
    ]


def _period(kind: str) -> str:
    due = next((due for due in SCHEDULE if due.kind == kind), None)
    return _("every %(time)s") % {"time": formats.duration(due.every_seconds)} if due else ""


@require_GET
@member("viewer")
def job(request: MemberRequest, public_id: str) -> HttpResponse:
    """One job; the part refreshes itself until the job ends."""
    found = queries.get_job(request.principal.workspace, public_id)
    row = _row(found, request.principal.role in ("editor", "admin"))
    context = {"job": row, "refresh_seconds": REFRESH_SECONDS if row.is_open else 0}
    return render(request, "hub/job.html#state" if wants_part(request) else "hub/job.html", context)


@require_POST
@member("editor")
def run_now(request: MemberRequest) -> HttpResponse:
    """Queue a job of a kind that a person may start."""
    kind = request.POST.get("kind", "")
    if kind not in RUNNABLE or kind not in HANDLERS:
        raise NotRunnable(_("Choose one of the kinds on the page."))
    queued = services.enqueue_job(workspace=request.principal.workspace, kind=kind)
    messages.success(request, _("Queued: %(kind)s.") % {"kind": kind_label(kind)})
    return redirect("job", public_id=queued.public_id)


@require_POST
@member("editor")
def retry(request: MemberRequest, public_id: str) -> HttpResponse:
    """Give a dead job new attempts."""
    services.retry_job(workspace=request.principal.workspace, public_id=public_id)
    messages.success(request, _("The job is tried again."))
    return redirect("job", public_id=public_id)
