"""The decay job and the decay policy: transitions at the moment their curves crossed, strengths as of one moment.

Everything is set-based and in short transactions, so that writers never wait long; running it twice changes nothing.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, cast

from django.db import connection, transaction
from django.db.models import F, Max, Min, Q

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set, record_event
from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.decay import DecayPolicy, PolicyBook, draw_curve
from memoryhub.long_term_memory.domain.lifecycle import Standing, judge
from memoryhub.long_term_memory.models import DecayRules, Kind, Memory, MemoryQuerySet, MemoryState, MemoryTag
from memoryhub.long_term_memory.queries.policy import (
    facts_of_curve,
    get_policy_book,
    policy_as_dict,
    read_policy_book,
)
from memoryhub.long_term_memory.rows import execute_many, insert_rows
from memoryhub.long_term_memory.search import documents
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.models import Workspace

CHUNK = 4_000  # rows of one transaction: about 50 ms of holding the write lock
MAX_ITEMS = 200  # of a report
Progress = Callable[[int, int], None]


class InvalidPolicy(errors.Invalid):
    slug = "invalid-policy"
    title = "This decay policy can't be used"


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
    """Write the transitions, a few thousand rows at a time, under one change set."""
    report.forgotten = report.archived = report.fading = 0
    workspace = writer.workspace
    change_set = None
    steps = (
        (MemoryState.FORGOTTEN, _due_to_forget, "forgets_at"),
        (MemoryState.ARCHIVED, _due_to_archive, "archives_at"),
        (MemoryState.FADING, _due_to_fade, "fades_at"),
    )
    for state, due, crossing in steps:
        last = 0  # what was moved is not looked at again
        while pks := list(due(workspace, at).filter(pk__gt=last).order_by("id").values_list("id", flat=True)[:CHUNK]):
            last = pks[-1]
            with transaction.atomic():
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
    for start in range(low, last + 1, CHUNK):
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE long_term_memory_memory SET strength = {formula}, strength_at = %s "  # noqa: S608
                "WHERE id BETWEEN %s AND %s AND workspace_id = %s AND state <> 'forgotten' "
                f"AND ABS(strength - {formula}) > 1e-9",
                [moment, at, start, start + CHUNK - 1, workspace.pk, moment],
            )
        if on_progress:
            on_progress(min(start + CHUNK - low, last - low + 1), last - low + 1)


# --- the policy ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """How many memories a policy would move, by new state, and the book it makes."""

    matched: int
    changes: dict[str, int]
    items: list[dict[str, Any]]
    book: PolicyBook
    change_set: ChangeSet | None = None


def build_policy_book(current: PolicyBook, changes: dict[str, Any]) -> PolicyBook:
    """A book with some fields changed, every policy in it checked; raises InvalidPolicy."""
    given = dict(changes)
    by_kind = given.pop("by_kind", None)
    by_tag = given.pop("by_tag", None)
    base = {**policy_as_dict(current.base), **given}
    try:
        book = read_policy_book(
            base,
            by_kind if by_kind is not None else _plain(current.by_kind),
            by_tag if by_tag is not None else _plain(current.by_tag),
        )
        unknown = set(book.by_kind) - set(Kind.values)
        if unknown:
            raise ValueError(f"by_kind takes {', '.join(Kind.values)}")
        for policy in (
            book.base,
            *(book.policy_for(kind, frozenset()) for kind in book.by_kind),
            *(book.policy_for("semantic", frozenset({tag})) for tag in book.by_tag),
        ):
            policy.validated()
    except (TypeError, ValueError) as error:
        raise InvalidPolicy(f"{error}.") from error
    return book


def _plain(book: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: sorted(value) if isinstance(value, frozenset) else value for key, value in fields.items()}
        for name, fields in book.items()
    }


def save_policy(*, writer: Writer, changes: dict[str, Any], dry_run: bool = False) -> PolicyPreview:
    """Change the decay policy; a dry run says which memories would change state, and stores nothing.

    Curves are drawn anew in chunks; the rules and all transitions are one change set.
    """
    current = get_policy_book(writer.workspace)
    book = build_policy_book(current, changes)
    now = clock.now()
    if dry_run:
        return _redraw_all(writer, book, now, None)
    with transaction.atomic():
        change_set = open_change_set(
            workspace=writer.workspace,
            actor=writer.actor,
            action="decay policy",
            reason=writer.reason,
            door=writer.door,
        )
        store_rules(writer, book, now, change_set)
    preview = _redraw_all(writer, book, now, change_set)
    change_set.subject_count = sum(preview.changes.values())
    change_set.save(update_fields=["subject_count"])
    return preview


def store_rules(writer: Writer, book: PolicyBook, now: datetime, change_set: ChangeSet) -> None:
    """Write the rules and what they were before, so that the change set can be reverted."""
    before = DecayRules.objects.filter(workspace=writer.workspace).first()
    stored = {"base": policy_as_dict(book.base), "by_kind": _plain(book.by_kind), "by_tag": _plain(book.by_tag)}
    DecayRules.objects.update_or_create(workspace=writer.workspace, defaults={**stored, "changed_at": now})
    record_event(
        workspace=writer.workspace,
        actor=writer.actor,
        action="decay policy",
        subject_type="decay_policy",
        subject_id=writer.workspace.name,
        detail={
            "before": {"base": before.base, "by_kind": before.by_kind, "by_tag": before.by_tag} if before else None,
            "after": stored,
        },
        change_set=change_set,
    )


def redraw_under(writer: Writer, book: PolicyBook, change_set: ChangeSet) -> None:
    """Draw every curve anew under a policy that is stored already."""
    _redraw_all(writer, book, clock.now(), change_set)


def _redraw_all(writer: Writer, book: PolicyBook, now: datetime, change_set: ChangeSet | None) -> PolicyPreview:
    """Walk all memories outside the trash, in chunks; without a change set only count."""
    changes: dict[str, int] = {}
    items: list[dict[str, Any]] = []
    matched, last = 0, 0
    while True:
        rows = list(
            Memory.objects.filter(workspace=writer.workspace, id__gt=last)
            .out_of_trash()
            .select_related("scope")
            .order_by("id")[:1_000]
        )
        if not rows:
            return PolicyPreview(matched, changes, items, book, change_set)
        last = rows[-1].pk
        matched += len(rows)
        for memory, verdict in _redraw_chunk(writer, rows, book, now, change_set):
            changes[verdict] = changes.get(verdict, 0) + 1
            if len(items) < MAX_ITEMS:
                items.append({"id": memory.public_id, "to": verdict, "importance": memory.importance})


def _redraw_chunk(
    writer: Writer, rows: list[Memory], book: PolicyBook, now: datetime, change_set: ChangeSet | None
) -> list[tuple[Memory, str]]:
    """Draw the curves of some rows; returns those that change state with their new one."""
    tags: dict[int, set[str]] = {memory.pk: set() for memory in rows}
    links = MemoryTag.objects.filter(
        memory_id__gte=rows[0].pk, memory_id__lte=rows[-1].pk, memory__workspace=writer.workspace
    )
    for memory_id, name in links.values_list("memory_id", "tag__name"):
        if memory_id in tags:
            tags[memory_id].add(name)
    moved, lasting = [], []
    for memory in rows:
        before = memory.state
        if redraw_for_policy(memory, frozenset(tags[memory.pk]), book, now):
            moved.append((memory, memory.state))
            if {before, memory.state} != {MemoryState.ACTIVE, MemoryState.FADING}:
                lasting.append(memory)  # fading is derived; every other move is a version
    if change_set is not None:
        with transaction.atomic():
            _store_curves(rows)
            _store_policy_versions(writer, lasting, tags, change_set, now)
            revising.update_document_facts(rows)
    return moved


def redraw_for_policy(memory: Memory, tags: frozenset[str], book: PolicyBook, now: datetime) -> bool:
    """Draw one curve and judge by it, also what the old curve archived; True where the state changes."""
    policy = book.policy_for(memory.kind, tags)
    curve = draw_curve(facts_of_curve(memory, tags), policy)
    before = memory.state
    by_curve = memory.state == MemoryState.ARCHIVED and memory.state_by_curve
    standing = Standing("active" if by_curve else memory.state, memory.state_since)  # type: ignore[arg-type]
    verdict = judge(standing, curve, policy, now)
    if verdict.state != before:
        memory.state, memory.state_since, memory.state_by_curve = verdict.state, verdict.since, True
        if verdict.state == "forgotten":
            memory.trashed_at, memory.dedupe_key = now, None
    revising.store_curve(memory, curve, policy, now)
    return memory.state != before


_CURVE_FIELDS = (
    "daily_loss", "floor", "fades_at", "archives_at", "forgets_at", "strength", "strength_at", "state", "state_since",
    "state_by_curve", "trashed_at", "dedupe_key",
)  # fmt: skip


def _store_curves(rows: list[Memory]) -> None:
    fields: list[Any] = [Memory._meta.get_field(name) for name in _CURVE_FIELDS]
    sets = ", ".join(f"{name} = %s" for name in _CURVE_FIELDS)
    execute_many(
        f"UPDATE long_term_memory_memory SET {sets} WHERE id = %s AND version = %s",  # noqa: S608
        [(*(f.get_db_prep_save(getattr(m, f.attname), connection) for f in fields), m.pk, m.version) for m in rows],
    )


def _store_policy_versions(
    writer: Writer, rows: list[Memory], tags: dict[int, set[str]], change_set: ChangeSet, now: datetime
) -> None:
    """Versions for the rows whose state was moved for good, so that a revert brings them back."""
    versions = []
    for memory in rows:
        memory.version += 1
        revision = revising.Revision(memory, tags[memory.pk])
        revision.operation = "deleted" if memory.state == MemoryState.FORGOTTEN else "modified"
        versions.append(revising.version_of(revision, writer, change_set, now))
    execute_many(
        "UPDATE long_term_memory_memory SET version = %s WHERE id = %s AND version = %s",
        [(memory.version, memory.pk, memory.version - 1) for memory in rows],
    )
    insert_rows(versions)


def default_policy() -> dict[str, Any]:
    """The product's own policy."""
    return {**asdict(DecayPolicy()), "protected_tags": sorted(DecayPolicy().protected_tags)}
