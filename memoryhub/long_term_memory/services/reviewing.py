"""The review inbox: what a person decides, and what their decision does. Every decision is one change set."""

from typing import Any

from django.db import transaction

from memoryhub.common import clock, errors, ids
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState, ReviewItem, ReviewKind, ReviewState, Trust
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.editing import edit_memory, pin_memory, restore_memory
from memoryhub.long_term_memory.services.finding import find_memory
from memoryhub.long_term_memory.services.forgetting import forget_memory
from memoryhub.long_term_memory.services.remembering import remember, supersede_row
from memoryhub.long_term_memory.services.writer import InvalidMemory, MemoryChanges, MemoryDraft, UnknownMemory, Writer

# What may be decided about each kind; `accept` and `reject` are the two keys of the inbox.
DECISIONS: dict[str, tuple[str, ...]] = {
    ReviewKind.DUPLICATE: ("accept", "merge", "keep_new", "keep_old", "reject", "keep_both"),
    ReviewKind.CONTRADICTION: ("accept", "keep_new", "keep_old", "keep_both", "reject"),
    ReviewKind.QUARANTINED: ("accept", "reject"),
    ReviewKind.EXTRACTED: ("accept", "reject"),
    ReviewKind.FADING: ("accept", "pin", "restore", "forget", "reject"),
}
KEEPING = {"reject", "keep_both"}


class UnknownReviewItem(errors.NotFound):
    slug = "unknown-review-item"
    title = "Unknown review item"


class AlreadyDecided(errors.Conflict):
    slug = "already-decided"
    title = "This was decided already"


def decide_review(
    *, writer: Writer, review_id: str, decision: str, options: dict[str, Any] | None = None
) -> ReviewItem:
    """Carry out a person's decision and close the item.

    Duplicates: accept or merge keeps the older memory with the tags of both, the higher importance and the sum of the
    accesses; keep_new puts the newer in its place. Contradictions: the loser is superseded, or both stay with the
    validity given in `options` (`valid_from` of the newer ends the older). Quarantined: accept trusts, reject forgets.
    Extracted: accept stores the candidate, with the fields in `options` changed. Fading: accept or pin keeps it.
    """
    with transaction.atomic():
        item = _open_item(writer, review_id, decision)
        HANDLERS[ReviewKind(item.kind)](writer, item, decision, options or {})
        item.state = ReviewState.REJECTED if decision in ("reject", "keep_both", "forget") else ReviewState.ACCEPTED
        item.decision = decision
        item.decided_by, item.decided_at = writer.actor.label[:200], clock.now()
        item.save(update_fields=["state", "decision", "decided_by", "decided_at", "memory"])
    return item


def _open_item(writer: Writer, review_id: str, decision: str) -> ReviewItem:
    rows = ReviewItem.objects.select_for_update(of=("self",)).filter(workspace=writer.workspace, public_id=review_id)
    item = rows.select_related("memory__scope", "other__scope").first()
    if item is None:
        raise UnknownReviewItem(f"There is no review item {review_id[:80]} here.")
    if item.state != ReviewState.OPEN:
        raise AlreadyDecided(f"{review_id} was decided: {item.decision}.")
    if decision not in DECISIONS[item.kind]:
        raise InvalidMemory(f"decision takes {', '.join(DECISIONS[item.kind])} here.")
    return item


def _pair(writer: Writer, item: ReviewItem) -> tuple[Memory, Memory]:
    """(newer, older); raises where one of them is gone."""
    if item.memory is None or item.other is None:
        raise UnknownMemory("One of the two memories is gone.")
    return find_memory(writer, item.memory.public_id), find_memory(writer, item.other.public_id)


def _decide_duplicate(writer: Writer, item: ReviewItem, decision: str, options: dict[str, Any]) -> None:
    if decision in KEEPING:
        return
    newer, older = _pair(writer, item)
    if decision == "keep_new":
        supersede_row(writer, older, newer, clock.now(), None)
        return
    if decision == "keep_old":
        forget_memory(writer=writer, memory_id=newer.public_id)
        return
    _merge(writer, newer, older)


def _merge(writer: Writer, newer: Memory, older: Memory) -> None:
    """Keep the older memory with all tags, the higher importance and the summed accesses; the newer is forgotten."""
    now = clock.now()
    kept, dropped = revising.begin([older, newer])
    change_set = revising.open_set(writer, "merge", 2)
    kept.tags |= dropped.tags
    older.importance = max(older.importance, newer.importance)
    older.pinned = older.pinned or newer.pinned
    older.access_count += newer.access_count
    moments = [at for at in (older.last_accessed_at, newer.last_accessed_at) if at]
    older.last_accessed_at = max(moments) if moments else None
    revising.set_state(dropped, MemoryState.FORGOTTEN, now)
    kept.restart_curve = True  # it was just said again
    revising.commit(writer=writer, action="merge", revisions=[kept, dropped], now=now, change_set=change_set)


def _decide_contradiction(writer: Writer, item: ReviewItem, decision: str, options: dict[str, Any]) -> None:
    if decision == "reject":
        return
    newer, older = _pair(writer, item)
    if decision in ("accept", "keep_new"):
        supersede_row(writer, older, newer, clock.now(), None)
    elif decision == "keep_old":
        supersede_row(writer, newer, older, clock.now(), None)
    else:
        moment = options.get("valid_from") or newer.created_at
        change_set = revising.open_set(writer, "validity", 2)
        first, second = revising.begin([older, newer])
        older.valid_until, newer.valid_from = moment, moment
        revising.commit(
            writer=writer, action="validity", revisions=[first, second], now=clock.now(), change_set=change_set
        )


def _decide_quarantined(writer: Writer, item: ReviewItem, decision: str, options: dict[str, Any]) -> None:
    if item.memory is None:
        raise UnknownMemory("The memory is gone.")
    if decision == "accept":
        changes = MemoryChanges(trust=Trust.TRUSTED)
        edit_memory(writer=writer, memory_id=item.memory.public_id, changes=changes, action="trust")
    else:
        forget_memory(writer=writer, memory_id=item.memory.public_id)


def _decide_extracted(writer: Writer, item: ReviewItem, decision: str, options: dict[str, Any]) -> None:
    if decision != "accept" or item.candidate is None:
        return
    candidate = {**item.candidate, **{name: value for name, value in options.items() if name in CANDIDATE_FIELDS}}
    draft = MemoryDraft(
        content=candidate["content"],
        scope=ScopeNames(**candidate.get("scope", {})),
        session=candidate.get("session"),
        event=candidate.get("event"),
        subject=candidate.get("subject", ""),
        kind=candidate.get("kind", "semantic"),
        importance=candidate.get("importance", 0.5),
        tags=candidate.get("tags", []),
    )
    stored = remember(writer=writer, drafts=[draft])[0]
    item.memory = Memory.objects.filter(workspace=writer.workspace, public_id=stored.id).first()


CANDIDATE_FIELDS = ("content", "subject", "kind", "importance", "tags")


def _decide_fading(writer: Writer, item: ReviewItem, decision: str, options: dict[str, Any]) -> None:
    if item.memory is None:
        raise UnknownMemory("The memory is gone.")
    if decision in ("accept", "pin"):
        pin_memory(writer=writer, memory_id=item.memory.public_id)
    elif decision == "restore":
        restore_memory(writer=writer, memory_id=item.memory.public_id)
    elif decision == "forget":
        forget_memory(writer=writer, memory_id=item.memory.public_id)


HANDLERS = {
    ReviewKind.DUPLICATE: _decide_duplicate,
    ReviewKind.CONTRADICTION: _decide_contradiction,
    ReviewKind.QUARANTINED: _decide_quarantined,
    ReviewKind.EXTRACTED: _decide_extracted,
    ReviewKind.FADING: _decide_fading,
}


def offer_candidates(
    *, writer: Writer, candidates: list[dict[str, Any]], score_by: str = "importance"
) -> list[ReviewItem]:
    """Put memories that are not stored yet into the inbox."""
    now = clock.now()
    rows = [
        ReviewItem(
            workspace=writer.workspace,
            public_id=ids.new_id("rev"),
            kind=ReviewKind.EXTRACTED,
            candidate=candidate,
            score=float(candidate.get(score_by) or 0),
            created_at=now,
        )
        for candidate in candidates
    ]
    return ReviewItem.objects.bulk_create(rows)


def offer_fading(*, writer: Writer, least_importance: float = 0.7, limit: int = 50) -> int:
    """Ask about important memories that are fading; each is asked about once while it fades. Returns how many."""
    rows = Memory.objects.filter(
        workspace=writer.workspace, state=MemoryState.FADING, importance__gte=least_importance, superseded_at=None
    ).exclude(review_items__kind=ReviewKind.FADING)
    now = clock.now()
    items = [
        ReviewItem(
            workspace=writer.workspace,
            public_id=ids.new_id("rev"),
            kind=ReviewKind.FADING,
            memory=memory,
            score=memory.importance,
            created_at=now,
        )
        for memory in rows.order_by("-importance", "id")[:limit]
    ]
    ReviewItem.objects.bulk_create(items, ignore_conflicts=True)
    return len(items)
