"""The decay job: transitions at the moment their curves crossed, strengths as of one moment.

Everything is set-based and in short transactions, so that writers never wait long; running it twice changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from django.db import connection, transaction
from django.db.models import F, Max, Min, Q

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock
from memoryhub.common.pace import Pace
from memoryhub.long_term_memory.models import Memory, MemoryQuerySet, MemoryState
from memoryhub.long_term_memory.search import documents
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.models import Workspace

FIRST_STEP = 1_000  # rows of the first transaction; the next ones follow the time that it took
MAX_ITEMS = 200  # of a report
Progress = Callable[[int, int], None]


@dataclass
class DecayReport:
    """What a run did, or would do: counts by new state, and the first memories concerned."""

    fading: int = 0
    archived: int = 0
    forgotten: int = 0
    items: list[dict[str, Any]] = field(default_factory=list)
    change_set: ChangeSet | None = None


# --- the run ---------------------------------------------------------------------------------------------------------
def run_decay(
    *, writer: Writer, at: datetime | None = None, dry_run: bool = False, on_progress: Progress | None = None
) -> DecayReport:
    """Move memories whose curves crossed a threshold by `at` (default: now), and evaluate all strengths at `at`.

    Importance is never touched. A row that somebody changed or forgot meanwhile is left as it is.
    """
    moment = at or clock.now()
    report = _foresee(writer.workspace, moment)
    if dry_run:
        return report
    if report.fading or report.archived or report.forgotten:
        _move(writer, moment, report)
    _evaluate_strengths(writer.workspace, moment, on_progress)
    return report


def _live(workspace: Workspace) -> MemoryQuerySet:
    """Memories that may move. The plus keeps the workspace's own indexes out: what is due is found by its moment."""
    rows = Memory.objects.filter(pinned=False)
    return cast(
        "MemoryQuerySet", rows.extra(where=["+long_term_memory_memory.workspace_id = %s"], params=[workspace.pk])
    )


def _due_to_forget(workspace: Workspace, at: datetime) -> MemoryQuerySet:
    """Archived long enough, or past both moments while no job ran."""
    return _live(workspace).filter(forgets_at__lte=at).exclude(state=MemoryState.FORGOTTEN)


def _due_to_archive(workspace: Workspace, at: datetime) -> MemoryQuerySet:
    rows = _live(workspace).filter(state__in=[MemoryState.ACTIVE, MemoryState.FADING], archives_at__lte=at)
    return rows.filter(Q(forgets_at=None) | Q(forgets_at__gt=at))


def _due_to_fade(workspace: Workspace, at: datetime) -> MemoryQuerySet:
    rows = _live(workspace).filter(state=MemoryState.ACTIVE, fades_at__lte=at)
    return rows.filter(Q(archives_at=None) | Q(archives_at__gt=at))


def _foresee(workspace: Workspace, at: datetime) -> DecayReport:
    report = DecayReport()
    steps = (
        ("forgotten", _due_to_forget(workspace, at), "forgets_at"),
        ("archived", _due_to_archive(workspace, at), "archives_at"),
        ("fading", _due_to_fade(workspace, at), "fades_at"),
    )
    for state, rows, crossing in steps:
        setattr(report, state, rows.count())
        for memory in rows.order_by(crossing, "id")[: MAX_ITEMS - len(report.items)]:
            report.items.append(
                {
                    "id": memory.public_id,
                    "from": memory.state,
                    "to": state,
                    "at": getattr(memory, crossing),
                    "importance": memory.importance,
                }
            )
    return report


def _move(writer: Writer, at: datetime, report: DecayReport) -> None:
    """Write the transitions, some thousand rows at a time, under one change set."""
    report.forgotten = report.archived = report.fading = 0
    workspace = writer.workspace
    change_set = None
    steps = (
        (MemoryState.FORGOTTEN, _due_to_forget, "forgets_at"),
        (MemoryState.ARCHIVED, _due_to_archive, "archives_at"),
        (MemoryState.FADING, _due_to_fade, "fades_at"),
    )
    for state, due, crossing in steps:
        last, pace = 0, Pace(FIRST_STEP)  # what was moved is not looked at again
        while pks := list(
            due(workspace, at).filter(pk__gt=last).order_by("id").values_list("id", flat=True)[: pace.size]
        ):
            last = pks[-1]
            with pace.step(), transaction.atomic():
                if change_set is None and state != MemoryState.FADING:
                    change_set = revising.open_set(writer, "decay", 0)
                moved = _transition(due(workspace, at), pks, state, crossing)
                if change_set is not None and state != MemoryState.FADING:
                    _write_versions(writer, change_set, pks, state)
            setattr(report, state.value, getattr(report, state.value) + moved)
    if change_set is not None:
        change_set.subject_count = report.archived + report.forgotten
        change_set.save(update_fields=["subject_count"])
    report.change_set = change_set


def _transition(due: MemoryQuerySet, pks: list[int], state: str, crossing: str) -> int:
    """Move those of the rows that are still due; returns how many."""
    changes: dict[str, Any] = {
        "state": state,
        "state_since": F(crossing),
        "state_by_curve": True,
        "fades_at": None,
    }
    if state != MemoryState.FADING:
        changes |= {"version": F("version") + 1, "archives_at": None}
    if state == MemoryState.FORGOTTEN:
        changes |= {"trashed_at": clock.now(), "dedupe_key": None, "forgets_at": None}
    moved = due.filter(pk__gte=pks[0], pk__lte=pks[-1]).update(**changes)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE long_term_memory_searchdocument SET state = %s WHERE key IN ("
            "SELECT (m.scope_id << 40) | m.id FROM long_term_memory_memory m WHERE m.id BETWEEN %s AND %s AND m.state = %s)",
            [documents.STATE_CODES[state], pks[0], pks[-1], state],
        )
        if state == MemoryState.FORGOTTEN:  # what lies in the trash keeps the strength it had when it got there
            formula = _STRENGTH[connection.vendor].replace("%s", "state_since")
            cursor.execute(
                f"UPDATE long_term_memory_memory SET strength = {formula}, strength_at = state_since "  # noqa: S608
                "WHERE id BETWEEN %s AND %s AND state = %s AND state_by_curve AND strength_at <> state_since",
                [pks[0], pks[-1], state],
            )
    return moved


_SET_STATE = {
    "sqlite": "json_set(v.facts, '$.state', %s)",
    "postgresql": "jsonb_set(v.facts, '{state}', to_jsonb(%s::text))",
}
_NEW_ID = {
    "sqlite": "'memver_' || lower(hex(randomblob(13)))",
    "postgresql": "'memver_' || substr(md5(random()::text || clock_timestamp()::text || m.id), 1, 26)",
}


def _write_versions(writer: Writer, change_set: ChangeSet, pks: list[int], state: str) -> None:
    """One version for each moved row, copied from the one before it inside the database."""
    vendor = connection.vendor
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO long_term_memory_memoryversion (
                workspace_id, memory_id, public_id, number, operation, content, content_sha256, facts, reason,
                actor_kind, actor_id, actor_label, change_set_id, created_at, redacted_by)
            SELECT m.workspace_id, m.id, {_NEW_ID[vendor]}, m.version, %s, m.content, m.content_sha256,
                {_SET_STATE[vendor]}, %s, %s, %s, %s, %s, %s, ''
            FROM long_term_memory_memory m
            JOIN long_term_memory_memoryversion v ON v.memory_id = m.id AND v.number = m.version - 1
            WHERE m.id BETWEEN %s AND %s AND m.state = %s AND NOT EXISTS (
                SELECT 1 FROM long_term_memory_memoryversion w WHERE w.memory_id = m.id AND w.number = m.version)
            """,  # noqa: S608
            [
                "deleted" if state == MemoryState.FORGOTTEN else "modified",
                state,
                "its strength fell" if state == MemoryState.ARCHIVED else "archived long enough",
                writer.actor.kind,
                writer.actor.id[:64],
                writer.actor.label[:200],
                change_set.pk,
                clock.now(),
                pks[0],
                pks[-1],
                state,
            ],
        )


_STRENGTH = {
    "sqlite": "MAX(floor, importance * EXP(-daily_loss * MAX(0.0, julianday(%s) - julianday(idle_since))))",
    "postgresql": (
        "GREATEST(floor, importance * EXP(-daily_loss * GREATEST(0.0, "
        "EXTRACT(EPOCH FROM (%s::timestamptz - idle_since)) / 86400.0)))"
    ),
}


def _evaluate_strengths(workspace: Workspace, at: datetime, on_progress: Progress | None) -> None:
    """Set every strength outside the trash to its value at one moment, in ranges of ids."""
    bounds = Memory.objects.filter(workspace=workspace).aggregate(low=Min("id"), high=Max("id"))
    if bounds["low"] is None:
        return
    formula = _STRENGTH[connection.vendor]
    moment = at.isoformat(sep=" ") if connection.vendor == "sqlite" else at
    low, last = bounds["low"], bounds["high"]
    start, pace = low, Pace(FIRST_STEP)
    while start <= last:
        size = pace.size
        with pace.step(), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE long_term_memory_memory SET strength = {formula}, strength_at = %s "  # noqa: S608
                "WHERE id BETWEEN %s AND %s AND workspace_id = %s AND state <> 'forgotten' "
                f"AND ABS(strength - {formula}) > 1e-9",
                [moment, at, start, start + size - 1, workspace.pk, moment],
            )
        start += size
        if on_progress:
            on_progress(min(start - low, last - low + 1), last - low + 1)
