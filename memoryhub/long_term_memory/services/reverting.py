"""Undoing a change set: every memory it touched goes back to what it was before, as a change set of its own.

A large one goes back in steps, by a job; running it again goes on where it stopped.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from django.db import connection, transaction

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.audit.services import open_change_set
from memoryhub.common import clock, errors
from memoryhub.long_term_memory.models import Memory, MemoryState, MemoryVersion, Operation
from memoryhub.long_term_memory.queries.policy import read_policy_book
from memoryhub.long_term_memory.services import deriving
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.clashes import find_path_twins, find_text_twins
from memoryhub.long_term_memory.services.editing import take_form
from memoryhub.long_term_memory.services.forgetting import close_reviews
from memoryhub.long_term_memory.services.policies import redraw_under, store_rules
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.principals import OutsideBinding

CHUNK = 500
Spans = dict[int, tuple[int, int]]  # memory -> the first and last of its versions that belong to the change set
Progress = Callable[[int, int], None]


class UnknownChangeSet(errors.NotFound):
    slug = "unknown-change-set"
    title = "Unknown change set"


class NothingToRevert(errors.Conflict):
    slug = "nothing-to-revert"
    title = "There is nothing to take back"


@dataclass(frozen=True, slots=True)
class Reverted:
    """What went back, what was left alone and why, and the change set that a second revert would undo."""

    reverted: int
    skipped: list[dict[str, str]] = field(default_factory=list)
    change_set: ChangeSet | None = None


def revert_change_set(*, writer: Writer, change_set_id: str, force: bool = False, dry_run: bool = False) -> Reverted:
    """Take a change set back; memories that changed since are listed and left alone, unless forced.

    A memory that it created is forgotten, one that it forgot is restored, an edited one gets its earlier form.
    """
    change_set = find_change_set(writer, change_set_id)
    with transaction.atomic():
        undo = open_undo(writer=writer, change_set=change_set)
        kept, skipped = _take_back_rows(writer, _spans(change_set), undo, force)
        undo.subject_count = kept
        undo.save(update_fields=["subject_count"])
        restored_rules = _revert_policy(writer, change_set, undo)
        if not kept and not skipped and not restored_rules:
            raise NothingToRevert("This change set touched no memories.")
        if dry_run:
            transaction.set_rollback(True)
            return Reverted(kept, skipped, None)
    return Reverted(kept, skipped, undo)


def find_change_set(writer: Writer, change_set_id: str) -> ChangeSet:
    """Return the change set of that id, or raise UnknownChangeSet."""
    change_set = ChangeSet.objects.filter(workspace=writer.workspace, public_id=change_set_id).first()
    if change_set is None:
        raise UnknownChangeSet(f"There is no change set {change_set_id[:80]} here.")
    return change_set


def open_undo(*, writer: Writer, change_set: ChangeSet) -> ChangeSet:
    """Open the change set that what goes back belongs to."""
    return open_change_set(
        workspace=writer.workspace,
        actor=writer.actor,
        action="revert",
        reason=writer.reason or f"reverts {change_set.public_id}",
        door=writer.door,
        reverts=change_set,
    )


def revert_in_steps(
    *, writer: Writer, change_set: ChangeSet, undo: ChangeSet, force: bool = False, on_progress: Progress | None = None
) -> Reverted:
    """Take a change set back, some hundreds of memories in each transaction, under an undo that is open already.

    A second run goes on with what the first did not reach.
    """
    spans = _spans(change_set)
    done = set(MemoryVersion.objects.filter(change_set=undo).values_list("memory_id", flat=True))
    todo = sorted(spans.keys() - done)
    reverted, skipped = len(done), []
    for start in range(0, len(todo), CHUNK):
        some = {pk: spans[pk] for pk in todo[start : start + CHUNK]}
        with transaction.atomic():
            kept, left = _take_back_rows(writer, some, undo, force)
        reverted += kept
        skipped += left
        if on_progress:
            on_progress(len(spans) - len(todo) + min(start + CHUNK, len(todo)), len(spans))
    undo.subject_count = reverted
    undo.save(update_fields=["subject_count"])
    _revert_policy(writer, change_set, undo, on_progress)
    return Reverted(reverted, skipped, undo)


def _take_back_rows(writer: Writer, spans: Spans, undo: ChangeSet, force: bool) -> tuple[int, list[dict[str, str]]]:
    """Give memories their earlier form; returns how many went back, and which did not and why."""
    now = clock.now()
    revisions = revising.begin(_load(spans))
    if any(not _reaches(writer, revision.memory) for revision in revisions):
        raise OutsideBinding("This change set touches memories outside the key's scope.")
    before = _forms_before(spans)
    skipped, kept = [], []
    for revision in revisions:
        first, last = spans[revision.memory.pk]
        reason = "" if force or revision.memory.version == last else "changed since"
        reason = reason or _take_back(revision, before.get(revision.memory.pk), first, now)
        if reason:
            skipped.append({"id": revision.memory.public_id, "reason": reason})
        else:
            kept.append(revision)
    skipped += _drop_clashes(kept)
    revising.commit(writer=writer, action="revert", revisions=kept, now=now, change_set=undo)
    forgotten = [revision.memory.pk for revision in kept if revision.memory.state == MemoryState.FORGOTTEN]
    for start in range(0, len(forgotten), CHUNK):
        close_reviews(forgotten[start : start + CHUNK], now)
    return len(kept), skipped


def _load(spans: Spans) -> list[Memory]:
    """The memories by row id, locked; in pieces, since a statement takes only so many values."""
    out: list[Memory] = []
    pks = sorted(spans)
    for start in range(0, len(pks), CHUNK):
        rows = Memory.objects.filter(pk__in=pks[start : start + CHUNK]).select_related("scope", "workspace")
        if connection.features.has_select_for_update:
            rows = rows.select_for_update(of=("self",))
        out += rows.order_by("id")
    return out


def _revert_policy(writer: Writer, change_set: ChangeSet, undo: ChangeSet, on_progress: Progress | None = None) -> bool:
    """Put the decay rules back that a change of policy replaced, and draw the curves by them."""
    event = AuditEvent.objects.filter(change_set=change_set, subject_type="decay_policy").first()
    if event is None:
        return False
    before = event.detail.get("before") or {"base": {}, "by_kind": {}, "by_tag": {}}
    book = read_policy_book(before["base"], before["by_kind"], before["by_tag"])
    if not AuditEvent.objects.filter(change_set=undo, subject_type="decay_policy").exists():
        store_rules(writer, book, clock.now(), undo)
    redraw_under(writer, book, undo, on_progress)
    return True


def _reaches(writer: Writer, memory: Memory) -> bool:
    binding, scope = writer.binding, memory.scope
    pairs = ((binding.agent, scope.agent), (binding.user, scope.user), (binding.project, scope.project))
    return all(wanted is None or wanted == actual for wanted, actual in pairs)


def _spans(change_set: ChangeSet) -> Spans:
    """For each memory of a change set the first and last version that belong to it."""
    spans: Spans = {}
    rows = MemoryVersion.objects.filter(change_set=change_set).values_list("memory_id", "number")
    for memory_id, number in rows:
        first, last = spans.get(memory_id, (number, number))
        spans[memory_id] = (min(first, number), max(last, number))
    return spans


def _forms_before(spans: Spans) -> dict[int, MemoryVersion]:
    """The version that stood before the change set, for each memory that had one."""
    wanted = {(memory_id, first - 1) for memory_id, (first, _) in spans.items() if first > 1}
    found: dict[int, MemoryVersion] = {}
    numbers = {number for _, number in wanted}
    memory_ids = sorted(memory_id for memory_id, _ in wanted)
    for start in range(0, len(memory_ids), CHUNK):
        rows = MemoryVersion.objects.filter(memory_id__in=memory_ids[start : start + CHUNK])
        for row in rows.filter(number__in=numbers) if len(numbers) < 100 else rows:  # not the whole of long histories
            if (row.memory_id, row.number) in wanted:
                found[row.memory_id] = row
    return found


def _take_back(revision: revising.Revision, row: MemoryVersion | None, first: int, now: datetime) -> str:
    """Give one memory its earlier form; returns why that is not possible."""
    memory = revision.memory
    if first == 1:
        if memory.state == MemoryState.FORGOTTEN:
            return "forgotten already"
        revising.set_state(revision, MemoryState.FORGOTTEN, now)
        return ""
    if row is None or row.content is None:
        return "its earlier form was redacted"
    take_form(revision, row)
    state = row.facts.get("state", MemoryState.ACTIVE)
    if state != revision.old_facts["state"]:
        revising.set_state(revision, state, now)
    revision.operation = Operation.DELETED if memory.state == MemoryState.FORGOTTEN else Operation.MODIFIED
    revision.restored_from = row.number
    revision.restart_curve = revision.changed
    return ""


def _drop_clashes(kept: list[revising.Revision]) -> list[dict[str, str]]:
    """Leave alone what can't go back because its path or text was taken meanwhile."""
    coming = [r for r in kept if r.memory.state != MemoryState.FORGOTTEN and r.changed]
    for revision in coming:
        deriving.identify(revision.memory)
    memories = [revision.memory for revision in coming]
    taken = {**find_text_twins(memories), **find_path_twins(memories)}
    kept[:] = [revision for revision in kept if revision.memory.pk not in taken]
    return [
        {"id": memory.public_id, "reason": "its place was taken meanwhile"} for memory in memories if memory.pk in taken
    ]
