"""What people do with memories: edit, pin, supersede, forget, bring back, take back, decide what waits in the inbox."""

from functools import partial
from typing import Any

from memoryhub.flows.demo.stage import Stage, Timeline, scope_of
from memoryhub.long_term_memory.models import Memory, MemoryState, ReviewItem
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.bulk import BulkAction, bulk_edit, rename_tag
from memoryhub.long_term_memory.services.editing import (
    edit_memory,
    last_change_set,
    pin_memory,
    restore_memory,
    supersede_memory,
)
from memoryhub.long_term_memory.services.forgetting import forget_memory
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.reverting import revert_change_set
from memoryhub.long_term_memory.services.reviewing import decide_review
from memoryhub.long_term_memory.services.writer import MemoryChanges, MemoryDraft


def tell_people(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    """Put every deed on the timeline."""
    for name, deed in (("edits", _edit), ("forget", _forget), ("pin", _pin)):
        for told in story[name]:
            timeline.at(stage.ago(told["days_ago"]), partial(deed, stage, told))
    for told in story["supersede"]:
        first, second = told["days_ago"]
        timeline.at(stage.ago(first), partial(add, stage, {**told, "text": told["old"]}))
        timeline.at(stage.ago(second), partial(_supersede, stage, told))
    _tell_tags(stage, timeline, story)
    _tell_second_thoughts(stage, timeline, story)
    for told in story["decided"]:
        timeline.at(stage.ago(told["days_ago"]), partial(add, stage, told))
        timeline.at(stage.ago(told["decided_days_ago"]), partial(_decide, stage, told))


def _tell_tags(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    archive, rename = story["archive_tag"], story["rename_tag"]
    timeline.at(stage.ago(archive["days_ago"]), partial(_archive_tag, stage, archive))
    timeline.at(
        stage.ago(rename["days_ago"]),
        lambda: rename_tag(writer=stage.writer(rename["by"]), old=rename["old"], new=rename["new"]),
    )


def _tell_second_thoughts(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    """A memory that comes back from the trash, and a change that is taken back."""
    back, undone = story["restore"], story["revert"]
    timeline.at(stage.ago(back["forgotten_days_ago"]), partial(_forget, stage, {**back, "reason": "Seemed too narrow"}))
    timeline.at(stage.ago(back["days_ago"]), partial(_restore, stage, back))
    timeline.at(stage.ago(undone["changed_days_ago"]), partial(_edit, stage, {**undone, "reason": ""}))
    timeline.at(stage.ago(undone["days_ago"]), partial(_revert, stage, undone))


def texts_of(story: dict[str, Any]) -> list[str]:
    """Return the texts by which the story finds memories again: those must have been written early."""
    told = [entry for name in ("edits", "forget", "pin", "ratings", "decided") for entry in story[name]]
    again = [entry["find"] for entry in (*told, story["restore"], story["revert"])]
    return again + [entry["about"] for name in ("contradictions", "near_duplicates") for entry in story[name]]


def find_told(stage: Stage, text: str, *, in_trash: bool = False) -> Memory:
    """Return the oldest memory of the story that holds this text."""
    rows = Memory.objects.filter(workspace=stage.workspace, content__contains=text)
    rows = rows.filter(state=MemoryState.FORGOTTEN) if in_trash else rows.exclude(state=MemoryState.FORGOTTEN)
    memory = rows.order_by("created_at", "id").first()
    if memory is None:
        raise LookupError(f"the story has no memory with the text {text!r} at this moment")
    return memory


def add(stage: Stage, told: dict[str, Any]) -> None:
    """One memory that an agent writes."""
    draft = MemoryDraft(
        content=told["text"],
        scope=scope_of(told["scope"]),
        importance=told["importance"],
        tags=told["tags"],
        session=told.get("session"),
    )
    remember(writer=stage.writer(told["scope"][0]), drafts=[draft])


def _edit(stage: Stage, told: dict[str, Any]) -> None:
    memory = find_told(stage, told["find"])
    given = {name: told[name] for name in ("content", "importance", "add_tags") if name in told}
    name = (memory.scope.agent or "ops") if told["by"] == "agent" else told["by"]
    writer = stage.writer(name, reason=told["reason"])
    edit_memory(writer=writer, memory_id=memory.public_id, changes=MemoryChanges(**given))


def _pin(stage: Stage, told: dict[str, Any]) -> None:
    pin_memory(writer=stage.writer(told["by"]), memory_id=find_told(stage, told["find"]).public_id)


def _forget(stage: Stage, told: dict[str, Any]) -> None:
    writer = stage.writer(told["by"], reason=told["reason"])
    forget_memory(writer=writer, memory_id=find_told(stage, told["find"]).public_id)


def _restore(stage: Stage, told: dict[str, Any]) -> None:
    writer = stage.writer(told["by"], reason=told["reason"])
    restore_memory(writer=writer, memory_id=find_told(stage, told["find"], in_trash=True).public_id)


def _revert(stage: Stage, told: dict[str, Any]) -> None:
    change_set = last_change_set(find_told(stage, told["find"]))
    if change_set is not None:
        revert_change_set(writer=stage.writer(told["by"]), change_set_id=change_set.public_id)


def _supersede(stage: Stage, told: dict[str, Any]) -> None:
    memory = find_told(stage, told["old"])
    draft = MemoryDraft(content=told["new"])
    supersede_memory(writer=stage.writer(told["by"]), memory_id=memory.public_id, draft=draft)


def _archive_tag(stage: Stage, told: dict[str, Any]) -> None:
    writer = stage.writer(told["by"], reason=told["reason"])
    bulk_edit(writer=writer, wanted=MemoryFilter(tags=[told["tag"]]), action=BulkAction(archive=True))


def _decide(stage: Stage, told: dict[str, Any]) -> None:
    """Decide the question that the story's text raised."""
    items = ReviewItem.objects.filter(workspace=stage.workspace, state="open", memory__content=told["text"])
    for item in items.order_by("id"):
        writer = stage.writer(told["by"])
        decide_review(writer=writer, review_id=item.public_id, decision=told["decision"])
