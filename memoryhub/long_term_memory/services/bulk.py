"""Changing many memories at once: a filter, an action, a preview, one change set.

A few thousand are changed in one transaction. Very many are changed by a job, in steps under one change set, so that
others write meanwhile; running it again goes on where it stopped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from django.db import connection, transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock
from memoryhub.long_term_memory.models import Memory, MemoryState, MemoryVersion, Tag
from memoryhub.long_term_memory.queries.memories import EmptyFilter, MemoryFilter, filter_memories
from memoryhub.long_term_memory.services import deriving, drafting
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.clashes import find_path_twins, find_text_twins
from memoryhub.long_term_memory.services.editing import apply_changes
from memoryhub.long_term_memory.services.forgetting import close_reviews
from memoryhub.long_term_memory.services.writer import BulkResult, InvalidMemory, MemoryChanges, UnknownMemory, Writer

CHUNK = 1_000
STEP = 500  # memories of one transaction of a job: a fifth of a second of holding the write lock
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """What is done to every match; `forget`, `restore` and `archive` exclude each other."""

    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()
    importance: float | None = None
    pin: bool | None = None
    archive: bool | None = None
    forget: bool = False
    restore: bool = False

    def checked(self) -> "BulkAction":
        """Return itself, or raise InvalidMemory."""
        chosen = [self.forget, self.restore, self.archive is not None]
        if sum(chosen) > 1:
            raise InvalidMemory("forget, restore and archive exclude each other.")
        if self == BulkAction():
            raise InvalidMemory("action must name something to do.")
        drafting.check_tags(self.add_tags)
        drafting.check_tags(self.remove_tags)
        if self.importance is not None:
            drafting.check_importance(self.importance)
        return self


def bulk_edit(*, writer: Writer, wanted: MemoryFilter, action: BulkAction, dry_run: bool = False) -> BulkResult:
    """Do one thing to all memories that pass a filter, in one transaction and one change set.

    A dry run says exactly what would happen and stores nothing. An empty filter is refused: name what you mean.
    """
    inside = check_bulk(writer=writer, wanted=wanted, action=action)
    with transaction.atomic():
        rows = filter_memories(writer.workspace, inside).select_related("scope").order_by("id")
        if connection.features.has_select_for_update:
            rows = rows.select_for_update(of=("self",))
        result = _run(writer, rows, action)
        if dry_run:
            transaction.set_rollback(True)
            return BulkResult(result.matched, result.changed, result.skipped, None)
    return result


def check_bulk(*, writer: Writer, wanted: MemoryFilter, action: BulkAction) -> MemoryFilter:
    """Return what the writer reaches of a filter; raises InvalidMemory, EmptyFilter or OutsideBinding."""
    action.checked()
    if wanted.is_empty:
        raise EmptyFilter("The filter is empty; it would touch every memory.")
    inside = wanted.inside(writer.binding)
    if action.restore and not inside.states:
        return replace(inside, states=[MemoryState.FORGOTTEN, MemoryState.ARCHIVED])
    return inside


def bulk_edit_in_steps(
    *,
    writer: Writer,
    wanted: MemoryFilter,
    action: BulkAction,
    change_set: ChangeSet,
    on_progress: Progress | None = None,
) -> BulkResult:
    """Do one thing to all memories that pass a filter now, some hundreds in each transaction, under an open change set.

    What left the filter's states meanwhile is left alone. A second run goes on with what the first did not reach.
    """
    inside = check_bulk(writer=writer, wanted=wanted, action=action)
    matching = set(filter_memories(writer.workspace, inside).order_by().values_list("pk", flat=True))
    done = set(MemoryVersion.objects.filter(change_set=change_set).values_list("memory_id", flat=True))
    todo, total = sorted(matching - done), len(matching | done)
    changed, skipped = len(done), []
    for start in range(0, len(todo), STEP):
        with transaction.atomic():
            part = _run(writer, _still_there(todo[start : start + STEP], inside), action, change_set)
        changed += part.changed
        skipped += part.skipped
        if on_progress:
            on_progress(total - len(todo) + min(start + STEP, len(todo)), total)
    change_set.subject_count = changed
    change_set.save(update_fields=["subject_count"])
    return BulkResult(total, changed, skipped, change_set)


def _still_there(pks: Sequence[int], wanted: MemoryFilter) -> list[Memory]:
    rows = Memory.objects.filter(pk__in=pks).select_related("scope").order_by("id")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    states = wanted.states or [state for state in MemoryState.values if state != MemoryState.FORGOTTEN]
    return [memory for memory in rows if memory.state in states]


def _run(writer: Writer, rows: Iterable[Memory], action: BulkAction, change_set: ChangeSet | None = None) -> BulkResult:
    now = clock.now()
    memories = list(rows)
    revisions = revising.begin(memories)
    skipped = _apply(revisions, action, writer)
    refused = {item["id"] for item in skipped}
    kept = [revision for revision in revisions if revision.memory.public_id not in refused]
    changing = sum(1 for revision in kept if revision.changed)
    change_set = revising.commit(writer=writer, action="bulk", revisions=kept, now=now, change_set=change_set)
    if action.forget:
        pks = [memory.pk for memory in memories]
        for start in range(0, len(pks), CHUNK):
            close_reviews(pks[start : start + CHUNK], now)
    return BulkResult(len(memories), changing if change_set else 0, skipped, change_set)


def _apply(revisions: Sequence[revising.Revision], action: BulkAction, writer: Writer) -> list[dict[str, str]]:
    """Set the action on every revision; what can't be done is listed with its reason."""
    now = clock.now()
    changes = _changes_of(action)
    taken = _restore(revisions) if action.restore else {}
    skipped = []
    for revision in revisions:
        memory = revision.memory
        if memory.pk in taken:
            skipped.append({"id": memory.public_id, "reason": taken[memory.pk]})
            continue
        try:
            apply_changes(revision, changes, writer, now)
        except InvalidMemory as error:
            skipped.append({"id": memory.public_id, "reason": error.detail})
            continue
        if action.forget:
            revising.set_state(revision, MemoryState.FORGOTTEN, now)
    return skipped


def _changes_of(action: BulkAction) -> MemoryChanges:
    given: dict[str, object] = {}
    if action.importance is not None:
        given["importance"] = action.importance
    if action.pin is not None:
        given["pinned"] = action.pin
    if action.archive is not None:
        given["archived"] = action.archive
    return MemoryChanges(add_tags=action.add_tags, remove_tags=action.remove_tags, **given)  # type: ignore[arg-type]


def _restore(revisions: Sequence[revising.Revision]) -> dict[int, str]:
    """Bring memories back from archive and trash; returns by row id why not, where their place is taken."""
    now = clock.now()
    coming = [r for r in revisions if r.memory.state in (MemoryState.ARCHIVED, MemoryState.FORGOTTEN)]
    for revision in coming:
        revising.set_state(revision, MemoryState.ACTIVE, now)
        revision.operation = "modified"
        revision.restart_curve = True
        deriving.identify(revision.memory)
    memories = [revision.memory for revision in coming]
    return {
        **dict.fromkeys(find_text_twins(memories), "the same text stands there already"),
        **dict.fromkeys(find_path_twins(memories), "its path is taken"),
    }


def rename_tag(*, writer: Writer, old: str, new: str) -> BulkResult:
    """Give a tag another name on every memory that has it; an existing tag of that name takes them in."""
    return merge_tags(writer=writer, names=[old], into=new, action="rename tag")


def merge_tags(*, writer: Writer, names: Sequence[str], into: str, action: str = "merge tags") -> BulkResult:
    """Put one tag in the place of several, on every memory that has one of them, in one change set."""
    target = drafting.check_tags([into])[0]
    sources = [name for name in drafting.check_tags(names) if name != target]
    if not sources:
        raise InvalidMemory("Name at least one tag other than the new one.")
    known = set(Tag.objects.filter(workspace=writer.workspace, name__in=sources).values_list("name", flat=True))
    missing = [name for name in sources if name not in known]
    if missing:
        raise UnknownMemory(f"There is no tag {missing[0]!r}.")
    with transaction.atomic():
        wanted = MemoryFilter(tags_any=sources, states=list(MemoryState.values)).inside(writer.binding)
        rows = filter_memories(writer.workspace, wanted).select_related("scope").order_by("id")
        if connection.features.has_select_for_update:
            rows = rows.select_for_update(of=("self",))
        revisions = revising.begin(rows)
        for revision in revisions:
            revision.tags = (revision.tags - set(sources)) | {target}
        change_set = revising.commit(writer=writer, action=action, revisions=revisions, now=clock.now())
        Tag.objects.filter(workspace=writer.workspace, name__in=sources, memory_tags__isnull=True).delete()
    return BulkResult(len(revisions), len(revisions), [], change_set)
