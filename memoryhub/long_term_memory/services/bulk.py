"""Changing many memories at once: a filter, an action, a preview, one change set."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection, transaction

from memoryhub.common import clock
from memoryhub.long_term_memory.models import MemoryState, Tag
from memoryhub.long_term_memory.queries.memories import EmptyFilter, MemoryFilter, filter_memories
from memoryhub.long_term_memory.services import drafting
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.clashes import find_path_twins, find_text_twins
from memoryhub.long_term_memory.services.editing import apply_changes
from memoryhub.long_term_memory.services.forgetting import close_reviews
from memoryhub.long_term_memory.services.writer import BulkResult, InvalidMemory, MemoryChanges, UnknownMemory, Writer

CHUNK = 1_000


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
    action.checked()
    if wanted.is_empty:
        raise EmptyFilter("The filter is empty; it would touch every memory.")
    inside = wanted.inside(writer.binding)
    if action.restore and not inside.states:
        inside = _replace_states(inside, [MemoryState.FORGOTTEN, MemoryState.ARCHIVED])
    with transaction.atomic():
        result = _run(writer, inside, action)
        if dry_run:
            transaction.set_rollback(True)
            return BulkResult(result.matched, result.changed, result.skipped, None)
    return result


def _replace_states(wanted: MemoryFilter, states: Sequence[str]) -> MemoryFilter:
    from dataclasses import replace

    return replace(wanted, states=list(states))


def _run(writer: Writer, wanted: MemoryFilter, action: BulkAction) -> BulkResult:
    now = clock.now()
    rows = filter_memories(writer.workspace, wanted).select_related("scope").order_by("id")
    if connection.features.has_select_for_update:
        rows = rows.select_for_update(of=("self",))
    memories = list(rows)
    revisions = revising.begin(memories)
    skipped = _apply(revisions, action, writer)
    refused = {item["id"] for item in skipped}
    kept = [revision for revision in revisions if revision.memory.public_id not in refused]
    changing = sum(1 for revision in kept if revision.changed)
    change_set = revising.commit(writer=writer, action="bulk", revisions=kept, now=now)
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
        revising.identify(revision.memory)
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
