"""A recall: a search by an agent. It leaves a receipt and counts as an access of what it returned."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from memoryhub.audit.services import record_event
from memoryhub.common import clock, ids
from memoryhub.common.tokens import estimate_tokens
from memoryhub.long_term_memory.domain.decay import PolicyBook
from memoryhub.long_term_memory.domain.ranking import Weights
from memoryhub.long_term_memory.models import Memory, MemoryRating, MemoryState, RecalledMemory, RecallReceipt
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.queries.recall import (
    WEIGHTS_KEY,
    Hit,
    InvalidSearch,
    SearchResult,
    checked,
    search_memories,
)
from memoryhub.long_term_memory.rows import execute_many, insert_rows
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import deriving
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.finding import find_memory
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.services import ensure_session


@dataclass(frozen=True, slots=True)
class Recall:
    """What was found, and the receipt that says so."""

    result: SearchResult
    receipt: RecallReceipt | None


def recall_memories(
    *, writer: Writer, request: SearchRequest, session: str | None = None, explain: bool = False, record: bool = True
) -> Recall:
    """Search, and with `record` leave a receipt and count the access. Without it nothing is written."""
    now = clock.now()
    result = search_memories(writer.workspace, request, now=now, binding=writer.binding, explain=explain)
    if not record:
        return Recall(result, None)
    with transaction.atomic():
        source = ensure_session(workspace=writer.workspace, sid=session) if session else writer.session
        receipt = _write_receipt(writer, checked(request, writer.binding), result, source, now)
        count_accesses(writer.workspace, [hit.memory for hit in result.hits], now)
    return Recall(result, receipt)


def _write_receipt(
    writer: Writer, request: SearchRequest, result: SearchResult, session: Session | None, now: datetime
) -> RecallReceipt:
    receipt = RecallReceipt.objects.create(
        workspace=writer.workspace,
        public_id=ids.new_id("rcp"),
        session=session,
        query=request.query[:8_000],
        scope=request.scope.named(),
        filters=_filters_of(request),
        weights=request.weights.as_dict(),
        result_count=len(result.hits),
        tokens=sum(estimate_tokens(hit.shown.content) for hit in result.hits),
        actor_kind=writer.actor.kind,
        actor_label=writer.actor.label[:200],
        created_at=now,
    )
    insert_rows([_line(receipt, hit) for hit in result.hits])
    return receipt


def _line(receipt: RecallReceipt, hit: Hit) -> RecalledMemory:
    return RecalledMemory(receipt=receipt, memory=hit.memory, rank=hit.rank, score=hit.score, version=hit.shown.version)


def _filters_of(request: SearchRequest) -> dict[str, object]:
    """The filters of a request as they were given, without the empty ones."""
    given = {
        "tags": list(request.tags),
        "tags_any": list(request.tags_any),
        "tags_none": list(request.tags_none),
        "kind": list(request.kinds),
        "state": list(request.states),
        "session": request.session,
        "since": request.since.isoformat() if request.since else None,
        "until": request.until.isoformat() if request.until else None,
        "importance_gte": request.importance_gte,
        "as_of": request.as_of.isoformat() if request.as_of else None,
        "include": list(request.include),
        "limit": request.limit,
    }
    return {name: value for name, value in given.items() if value not in (None, [])}


def count_accesses(workspace: Workspace, memories: Sequence[Memory], now: datetime) -> int:
    """Count one access of each memory, at most one per policy window, and draw their curves anew; returns how many.

    Content, tags, version and times of change stay as they are: being read does not make a memory look changed.
    """
    if not memories:
        return 0
    book = get_policy_book(workspace)
    bumped = [memory for memory in memories if _outside_window(memory, book, now)]
    if not bumped:
        return 0
    before = [(memory.access_count, memory.state) for memory in bumped]
    for memory in bumped:
        memory.access_count += 1
        memory.last_accessed_at = now
        if memory.state in (MemoryState.ACTIVE, MemoryState.FADING):
            deriving.redraw(memory, tag_names(memory), book, now)
    _store_accesses(bumped, [state for _, state in before])
    revising.update_document_facts(bumped)
    return len(bumped)


def _outside_window(memory: Memory, book: PolicyBook, now: datetime) -> bool:
    if memory.last_accessed_at is None:
        return True
    policy = book.policy_for(memory.kind, frozenset(tag_names(memory)))
    return now - memory.last_accessed_at >= timedelta(seconds=policy.access_window_seconds)


def _store_accesses(memories: Sequence[Memory], old_states: Sequence[str]) -> None:
    """One statement for the page of results; a row whose state changed meanwhile keeps that state."""
    names = (
        "last_accessed_at",
        "idle_since",
        "daily_loss",
        "fades_at",
        "archives_at",
        "strength",
        "strength_at",
        "state_since",
    )
    fields: list[Any] = [Memory._meta.get_field(name) for name in names]
    from django.db import connection

    sets = ", ".join(f"{name} = %s" for name in names)
    execute_many(
        f"UPDATE long_term_memory_memory SET access_count = access_count + 1, {sets}, state = %s "  # noqa: S608
        "WHERE id = %s AND state = %s",
        [
            (
                *(field.get_db_prep_save(getattr(memory, field.attname), connection) for field in fields),
                memory.state,
                memory.pk,
                old_state,
            )
            for memory, old_state in zip(memories, old_states, strict=True)
        ],
    )


def rate_memory(*, writer: Writer, memory_id: str, helpful: bool) -> Memory:
    """Note whether a recalled memory helped. Ratings re-rank; they never forget by themselves."""
    with transaction.atomic():
        memory = find_memory(writer, memory_id)
        MemoryRating.objects.create(
            memory=memory,
            helpful=helpful,
            reason=writer.reason[:500],
            actor_kind=writer.actor.kind,
            actor_label=writer.actor.label[:200],
            created_at=clock.now(),
        )
        name = "helpful_count" if helpful else "harmful_count"
        Memory.objects.filter(pk=memory.pk).update(**{name: F(name) + 1})
        memory.refresh_from_db(fields=["helpful_count", "harmful_count"])
        revising.update_document_facts([memory])
        record_event(
            workspace=writer.workspace,
            actor=writer.actor,
            action="rate",
            subject_type="memory",
            subject_id=memory.public_id,
            detail={"helpful": helpful},
        )
    return memory


def save_default_weights(*, writer: Writer, weights: Weights) -> None:
    """Make these the weights of searches that bring none."""
    try:
        weights.validated()
    except ValueError as error:
        raise InvalidSearch(f"{error}.") from error
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update().get(pk=writer.workspace.pk)
        before = workspace.settings.get(WEIGHTS_KEY)
        workspace.settings = {**workspace.settings, WEIGHTS_KEY: weights.as_dict()}
        workspace.save(update_fields=["settings"])
        record_event(
            workspace=workspace,
            actor=writer.actor,
            action="save recall weights",
            subject_type="workspace",
            subject_id=workspace.name,
            detail={"before": before, "after": weights.as_dict()},
        )
    writer.workspace.settings = workspace.settings
