"""What is done to very many memories: left as a job by a page that answers at once, done in steps, undone by one click.

The change set is opened with the job, so that both name the same thing from the start. A handler may run twice: each step
is a transaction, and what carries a version of the change set already is not touched again.
"""

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from django.db import transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.queries import get_change_set
from memoryhub.audit.services import open_change_set
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.bulk import BulkAction, bulk_edit_in_steps, check_bulk
from memoryhub.long_term_memory.services.policies import put_in_force, redraw_in_steps
from memoryhub.long_term_memory.services.reverting import find_change_set, open_undo, revert_in_steps
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job, report_progress
from memoryhub.workspaces.principals import Actor, Binding

BULK, REVERT, REDRAW = "bulk_memories", "revert_changes", "redraw_curves"
IN_STEPS = (BULK, REVERT, REDRAW)
MAX_REPORTED = 50  # skipped memories that a job's result names
_TIMES = ("since", "until", "fades_before", "never_recalled_since")


def leave_bulk_job(*, writer: Writer, wanted: MemoryFilter, action: BulkAction) -> Job:
    """Leave the job that does one thing to all matches; raises as bulk_edit does where it makes no sense."""
    check_bulk(writer=writer, wanted=wanted, action=action)
    with transaction.atomic():
        change_set = open_change_set(
            workspace=writer.workspace, actor=writer.actor, action="bulk", reason=writer.reason, door=writer.door
        )
        return _leave(BULK, writer, change_set, {"wanted": pack_filter(wanted), "action": asdict(action)})


def run_bulk_job(job: Job) -> dict[str, Any]:
    """Do it, and say how many matched, changed and were skipped."""
    writer, change_set = _opened(job)
    result = bulk_edit_in_steps(
        writer=writer,
        wanted=unpack_filter(job.args["wanted"]),
        action=BulkAction(**job.args["action"]),
        change_set=change_set,
        on_progress=lambda done, total: report_progress(job, done, total),
    )
    return {
        "matched": result.matched,
        "changed": result.changed,
        "unchanged": result.matched - result.changed - len(result.skipped),
        **_ended(change_set, result.skipped),
    }


def leave_revert_job(*, writer: Writer, change_set_id: str, force: bool = False) -> Job:
    """Leave the job that takes a change set back."""
    with transaction.atomic():
        change_set = find_change_set(writer, change_set_id)
        undo = open_undo(writer=writer, change_set=change_set)
        return _leave(REVERT, writer, undo, {"force": force})


def run_revert_job(job: Job) -> dict[str, Any]:
    """Take it back, and say how much went back and what was left alone."""
    writer, undo = _opened(job)
    if undo.reverts is None:
        raise ValueError(f"{undo.public_id} takes nothing back")
    result = revert_in_steps(
        writer=writer,
        change_set=undo.reverts,
        undo=undo,
        force=job.args["force"],
        on_progress=lambda done, total: report_progress(job, done, total),
    )
    return {"reverted": result.reverted, **_ended(undo, result.skipped)}


def leave_redraw_job(*, writer: Writer, changes: dict[str, Any]) -> Job:
    """Put a decay policy in force and leave the job that draws the curves by it; raises InvalidPolicy."""
    with transaction.atomic():
        return _leave(REDRAW, writer, put_in_force(writer=writer, changes=changes), {})


def run_redraw_job(job: Job) -> dict[str, Any]:
    """Draw every curve by the rules in force, and say how many memories change their state."""
    writer, change_set = _opened(job)
    preview = redraw_in_steps(
        writer=writer,
        change_set=change_set,
        on_progress=lambda done, total: report_progress(job, done, total),
    )
    return {"redrawn": preview.matched, **preview.changes, "change_set": change_set.public_id}


def pack_filter(wanted: MemoryFilter) -> dict[str, Any]:
    """A filter as JSON: only what narrows, and not which rows met its tags a moment ago."""
    given = {field.name: getattr(wanted, field.name) for field in fields(wanted) if field.name != "met"}
    plain = {name: value for name, value in given.items() if value != getattr(MemoryFilter(), name)}
    for name in plain.keys() & set(_TIMES):
        plain[name] = plain[name].isoformat()
    if "scope" in plain:
        plain["scope"] = wanted.scope.as_dict()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items()}


def unpack_filter(packed: dict[str, Any]) -> MemoryFilter:
    """The filter that was packed."""
    given = dict(packed)
    for name in given.keys() & set(_TIMES):
        given[name] = datetime.fromisoformat(given[name])
    if "scope" in given:
        given["scope"] = ScopeNames(**given["scope"])
    return MemoryFilter(**given)


def _leave(kind: str, writer: Writer, change_set: ChangeSet, args: dict[str, Any]) -> Job:
    actor, binding = writer.actor, writer.binding
    own = {
        "change_set": change_set.public_id,
        "actor": [actor.kind, actor.id, actor.label],
        "binding": [binding.agent, binding.user, binding.project],
        "door": writer.door,
        "reason": writer.reason,
    }
    return enqueue_job(workspace=writer.workspace, kind=kind, args={**args, **own})


def _opened(job: Job) -> tuple[Writer, ChangeSet]:
    """Who asked for the job, and the change set that it writes under."""
    if job.workspace is None:
        raise ValueError(f"a job of the kind {job.kind} belongs to a workspace")
    args = job.args
    writer = Writer(
        workspace=job.workspace,
        actor=Actor(*args["actor"]),
        door=args["door"],
        reason=args["reason"],
        binding=Binding(*args["binding"]),
    )
    return writer, get_change_set(job.workspace, args["change_set"])


def _ended(change_set: ChangeSet, skipped: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "skipped": len(skipped),
        "change_set": change_set.public_id,
        **{f"skipped {item['id']}": item["reason"] for item in skipped[:MAX_REPORTED]},
    }
