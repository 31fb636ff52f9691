"""Forgetting (into the trash, restorable for 30 days) and erasing (every trace, for good)."""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, models, transaction

from memoryhub.audit.models import AuditEvent, ChangeSet, IdempotentReply
from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.decay import TRASH_DAYS
from memoryhub.long_term_memory.domain.duplicates import content_sha256
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryOrigin,
    MemoryRating,
    MemoryState,
    MemoryStore,
    MemoryTag,
    MemoryVersion,
    RecalledMemory,
    RecallReceipt,
    ReviewItem,
    Scope,
    SearchDocument,
    Tag,
)
from memoryhub.long_term_memory.search import documents, vectors
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.finding import expect, find_memory
from memoryhub.long_term_memory.services.writer import InvalidMemory, Writer
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace

logger = logging.getLogger(__name__)
CHUNK = 500
_TABLES: tuple[type[models.Model], ...] = (
    Memory,
    MemoryOrigin,
    MemoryTag,
    MemoryVersion,
    RecalledMemory,
    RecallReceipt,
    ReviewItem,
    Scope,
    SearchDocument,
    Tag,
    AuditEvent,
    ChangeSet,
    IdempotentReply,
)


class EraseWouldTakeAll(errors.Malformed):
    slug = "empty-selection"
    title = "Name what to erase"


def forget_memory(
    *,
    writer: Writer,
    memory_id: str,
    expected_version: int | None = None,
    expected_sha256: str | None = None,
) -> Memory:
    """Move a memory to the trash: no list, search or door finds it any more, and it can be restored for 30 days."""
    with transaction.atomic():
        memory = find_memory(writer, memory_id)
        expect(memory, expected_version, expected_sha256)
        now = clock.now()
        revision = revising.begin([memory])[0]
        revising.set_state(revision, MemoryState.FORGOTTEN, now)
        revising.commit(writer=writer, action="forget", revisions=[revision], now=now)
        close_reviews([memory.pk], now)
    return memory


def close_reviews(memory_pks: Sequence[int], now: datetime) -> None:
    """Close the questions about memories that are gone."""
    ReviewItem.objects.filter(memory_id__in=memory_pks, state="open").update(
        state="rejected", decision="forgotten", decided_at=now
    )
    ReviewItem.objects.filter(other_id__in=memory_pks, state="open").update(
        state="rejected", decision="forgotten", decided_at=now
    )


@dataclass
class Erased:
    """What an erase removed, and where older copies may still be."""

    memories: int = 0
    versions: int = 0
    ids: list[str] = field(default_factory=list)
    receipt_ids: set[int] = field(default_factory=set)  # blanked or removed
    hashes: set[str] = field(default_factory=set)  # of all texts that went

    def add(self, part: "Erased") -> None:
        """Count another part in; only single memories are named."""
        self.memories += part.memories
        self.versions += part.versions
        self.receipt_ids |= part.receipt_ids
        self.hashes |= part.hashes

    @property
    def receipts(self) -> int:
        return len(self.receipt_ids)


def erase_memory(*, writer: Writer, memory_id: str, scrub: bool = True) -> Erased:
    """Remove a memory with its versions, index entries, receipts and log lines, and scrub the files behind them.

    Doors call `flows.erase`, which takes what other rooms hold of it as well.
    """
    memory = find_memory(writer, memory_id, in_trash=True)
    erased = erase_rows(writer=writer, memories=[memory])
    drop_candidates(workspace=writer.workspace, hashes=erased.hashes)
    if scrub:
        scrub_files()
    return erased


def request_erase(*, writer: Writer, scope: ScopeNames) -> Job:
    """Leave a job that erases everything of an agent, a user or a project."""
    if not scope:
        raise EraseWouldTakeAll("Name an agent, a user or a project.")
    for name, value in scope.named().items():
        bound = getattr(writer.binding, name)
        if bound and bound != value:
            raise InvalidMemory(f"The key is bound to {name} {bound}.")
    with transaction.atomic():
        return enqueue_job(workspace=writer.workspace, kind="erase", args={"scope": scope.named()})


def erase_scope(*, writer: Writer, scope: ScopeNames) -> Erased:
    """Erase everything that lies inside a scope, in chunks; running it again finds nothing more to do.

    Memories, recalls, candidates that wait for review, stores, and the names themselves. The files are scrubbed by the
    caller, once.
    """
    if not scope:
        raise EraseWouldTakeAll("Name an agent, a user or a project.")
    rows = Memory.objects.filter(workspace=writer.workspace)
    receipts = RecallReceipt.objects.filter(workspace=writer.workspace)
    scopes = Scope.objects.filter(workspace=writer.workspace, **scope.named())
    for name, value in scope.named().items():
        rows = rows.filter(**{f"scope__{name}": value})
        receipts = receipts.filter(**{f"scope__{name}": value})
    total = Erased()
    while chunk := list(rows.select_related("scope").order_by("id")[:CHUNK]):
        total.add(erase_rows(writer=writer, memories=chunk))
    with transaction.atomic():
        total.receipt_ids |= set(receipts.values_list("pk", flat=True))
        receipts.delete()
        drop_candidates(workspace=writer.workspace, hashes=total.hashes, scope=scope)
        if scope.project and not (scope.agent or scope.user):
            stores = MemoryStore.objects.filter(workspace=writer.workspace, project=scope.project)
            store_ids = list(stores.values_list("public_id", flat=True))
            _blank_events(writer.workspace, store_ids)
            stores.delete()
        scopes.filter(memories__isnull=True).delete()
    return total


def drop_candidates(*, workspace: Workspace, hashes: Collection[str], scope: ScopeNames | None = None) -> int:
    """Remove extracted candidates that say what was erased, or that belong to an erased scope; returns how many."""
    rows = ReviewItem.objects.filter(workspace=workspace, candidate__isnull=False).values_list("pk", "candidate")
    gone = [
        pk
        for pk, candidate in rows.iterator(chunk_size=CHUNK)
        if candidate is not None
        and (
            content_sha256(str(candidate.get("content", ""))) in hashes
            or (scope and scope.covers(ScopeNames(**(candidate.get("scope") or {}))))
        )
    ]
    for start in range(0, len(gone), CHUNK):
        ReviewItem.objects.filter(pk__in=gone[start : start + CHUNK]).delete()
    return len(gone)


def _blank_events(workspace: Workspace, subject_ids: Sequence[str]) -> None:
    """Keep that something was done, not what it said."""
    AuditEvent.objects.filter(
        workspace=workspace, subject_type__startswith="memory", subject_id__in=subject_ids
    ).update(detail={})


def erase_rows(*, writer: Writer, memories: Sequence[Memory]) -> Erased:
    """Remove memories and whatever tells of their content; the log keeps that something was erased, not what."""
    pks = [memory.pk for memory in memories]
    public_ids = [memory.public_id for memory in memories]
    keys = documents.keys_of(memories)
    result = Erased(memories=len(pks), ids=public_ids)
    with transaction.atomic():
        stored = list(SearchDocument.objects.filter(key__in=keys))
        term_index().remove([(row.key, documents.index_tokens(row)) for row in stored])
        SearchDocument.objects.filter(key__in=keys).delete()
        result.receipt_ids = set(RecalledMemory.objects.filter(memory_id__in=pks).values_list("receipt_id", flat=True))
        versions = MemoryVersion.objects.filter(memory_id__in=pks)
        result.versions = versions.count()
        result.hashes = {*versions.values_list("content_sha256", flat=True), *(m.content_sha256 for m in memories)}
        version_ids = list(versions.values_list("public_id", flat=True))
        tag_ids = set(MemoryTag.objects.filter(memory_id__in=pks).values_list("tag_id", flat=True))
        change_sets = set(MemoryVersion.objects.filter(memory_id__in=pks).values_list("change_set_id", flat=True))
        Memory.objects.filter(superseded_by_id__in=pks).update(superseded_by=None)
        for model in (MemoryVersion, MemoryTag, RecalledMemory, MemoryRating, MemoryOrigin):
            model.objects.filter(memory_id__in=pks).delete()
        ReviewItem.objects.filter(memory_id__in=pks).delete()
        ReviewItem.objects.filter(other_id__in=pks).delete()
        RecallReceipt.objects.filter(pk__in=result.receipt_ids).update(query="[erased]", filters={})
        Memory.objects.filter(pk__in=pks).delete()
        Tag.objects.filter(pk__in=tag_ids, memory_tags__isnull=True).delete()
        _blank_events(writer.workspace, [*public_ids, *version_ids])
        ChangeSet.objects.filter(pk__in=change_sets - {None}).update(reason="")
        IdempotentReply.objects.filter(workspace=writer.workspace).delete()
        record_event(
            workspace=writer.workspace,
            actor=writer.actor,
            action="erase",
            subject_type="memory",
            subject_id=public_ids[0] if len(public_ids) == 1 else "",
            detail={"memories": len(pks), "versions": result.versions},
        )
        if vectors.drop_files(writer.workspace.pk):
            enqueue_job(workspace=writer.workspace, kind="embed_memories")  # writes the file anew
    return result


def scrub_files(also: Sequence[type[models.Model]] = ()) -> None:
    """Overwrite what deleted rows left in the files: index segments, free pages and the write-ahead log.

    PostgreSQL scrubs table by table: the tables of this room, and those that are given.
    """
    term_index().compact()
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            if not connection.in_atomic_block:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # waits for readers as long as any statement does
                if cursor.fetchone()[0]:
                    logger.warning("a long reader keeps the write-ahead log; it is emptied by the next checkpoint")
        elif not connection.in_atomic_block:
            for model in (*_TABLES, *also):
                cursor.execute(f"VACUUM {connection.ops.quote_name(model._meta.db_table)}")


def empty_trash(*, workspace: Workspace | None, writer_for: Callable[[Workspace], Writer], now: datetime) -> int:
    """Erase what has lain in the trash for 30 days; returns how many."""
    rows = Memory.objects.filter(state=MemoryState.FORGOTTEN, trashed_at__lte=now - timedelta(days=TRASH_DAYS))
    if workspace is not None:
        rows = rows.filter(workspace=workspace)
    count = 0
    while chunk := list(rows.select_related("scope", "workspace").order_by("id")[:CHUNK]):
        by_workspace: dict[int, list[Memory]] = {}
        for memory in chunk:
            by_workspace.setdefault(memory.workspace_id, []).append(memory)
        for group in by_workspace.values():
            erase_rows(writer=writer_for(group[0].workspace), memories=group)
        count += len(chunk)
    if count:
        scrub_files()
    return count
