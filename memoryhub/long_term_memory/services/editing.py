"""Changing one memory: its fields, its place, what stands in its place; and bringing it back."""

from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain import guards
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState, MemoryVersion, Trust
from memoryhub.long_term_memory.queries.guards import get_guard_settings
from memoryhub.long_term_memory.search import embedders
from memoryhub.long_term_memory.services import drafting
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.finding import closes_circle, expect, find_memory
from memoryhub.long_term_memory.services.proposing import ask_about_quarantined
from memoryhub.long_term_memory.services.remembering import leave_embedding_job, remember
from memoryhub.long_term_memory.services.writer import (
    UNSET,
    HoldsSecrets,
    InvalidMemory,
    MemoryChanges,
    MemoryDraft,
    Remembered,
    UnknownVersion,
    Writer,
)


class HeadCannotBeRedacted(errors.Conflict):
    slug = "head-not-redactable"
    title = "The current content can't be redacted"


def edit_memory(
    *,
    writer: Writer,
    memory_id: str,
    changes: MemoryChanges,
    expected_version: int | None = None,
    expected_sha256: str | None = None,
    file_door: bool = False,
    action: str = "edit",
) -> Memory:
    """Set the given fields of a memory and return it; what changes nothing writes nothing.

    Raises ChangedMeanwhile (with the current version) where the caller saw another version or content.
    """
    guarded = _guarded_text(writer, changes, file_door=file_door)
    vector = _embed_change(guarded.content if guarded else None)
    with transaction.atomic():
        memory = find_memory(writer, memory_id)
        expect(memory, expected_version, expected_sha256)
        now = clock.now()
        revision = revising.begin([memory])[0]
        apply_changes(revision, changes, writer, now)
        if guarded is not None:
            memory.content, memory.flags = guarded.content, guarded.flags
            if guarded.suspicious and changes.trust is UNSET:
                memory.trust = Trust.QUARANTINED
        same_subject = "subject" not in revision.changed_facts
        vectors = {memory.pk: vector} if vector and same_subject and not memory.subject else {}
        revising.commit(writer=writer, action=action, revisions=[revision], now=now, vectors=vectors)
        if memory.trust == Trust.QUARANTINED:
            ask_about_quarantined(workspace=writer.workspace, memories=[memory], now=now)
        if (revision.content_changed or not same_subject) and not vectors:
            leave_embedding_job(writer.workspace)
    return memory


@dataclass(frozen=True, slots=True)
class _GuardedText:
    """A new text as it may be stored, and what the guards found in it."""

    content: str
    flags: list[str]
    suspicious: bool


def _guarded_text(writer: Writer, changes: MemoryChanges, *, file_door: bool) -> _GuardedText | None:
    """The new content after the same guards that a new memory passes; file doors refuse secrets instead of hiding them."""
    if changes.content is UNSET:
        return None
    content = drafting.check_content(changes.content, may_be_empty=file_door)
    settings = get_guard_settings(writer.workspace)
    flags = []
    if settings.redact_secrets:
        cleaned, found = guards.redact_secrets(content)
        if found and file_door:
            raise HoldsSecrets("The text holds a secret (a key, a token or a password); take it out and write again.")
        content = cleaned
        flags += ["secrets_redacted"] if found else []
    suspicious = guards.is_instruction_like(content)
    flags += ["instruction_like"] if suspicious else []
    return _GuardedText(content, flags, suspicious and settings.quarantine_instructions)


def _embed_change(text: str | None) -> bytes | None:
    """The vector of a new text, made before the transaction; None leaves it to a job."""
    embedder = embedders.current()
    if text is None or not embedder.model_id:
        return None
    try:
        return embedders.pack(embedder.embed([text], "document")[0])
    except embedders.EmbedderUnavailable:
        return None


def apply_changes(revision: revising.Revision, changes: MemoryChanges, writer: Writer, now: datetime) -> None:
    """Set fields of a revision from an edit, each after its rule; content is the caller's business."""
    memory = revision.memory
    if changes.subject is not UNSET:
        memory.subject = drafting.check_subject(changes.subject)
    if changes.kind is not UNSET:
        memory.kind = drafting.check_kind(changes.kind)
    if changes.importance is not UNSET:
        memory.importance = drafting.check_importance(changes.importance)
    if changes.pinned is not UNSET:
        memory.pinned = changes.pinned
    if changes.trust is not UNSET:
        if changes.trust not in Trust.values:
            raise InvalidMemory(f"trust must be one of {', '.join(Trust.values)}.")
        memory.trust = changes.trust
    if changes.path is not UNSET:
        memory.path = drafting.check_memory_path(changes.path) if changes.path is not None else None
    for name in ("valid_from", "valid_until", "expires_at"):
        value = getattr(changes, name)
        if value is not UNSET:
            setattr(memory, name, value)
    drafting.check_validity(memory.valid_from, memory.valid_until)
    if changes.scope is not UNSET:
        memory.scope = revising.find_scope(writer.workspace, drafting.bind(changes.scope, writer.binding).as_dict())
    _apply_tags(revision, changes)
    if changes.archived is not UNSET:
        _apply_archived(revision, archived=changes.archived, now=now)


def _apply_tags(revision: revising.Revision, changes: MemoryChanges) -> None:
    if changes.tags is not UNSET:
        revision.tags = set(drafting.check_tags(changes.tags))
    revision.tags |= set(drafting.check_tags(changes.add_tags))
    revision.tags -= set(drafting.check_tags(changes.remove_tags))
    if len(revision.tags) > drafting.MAX_TAGS:
        raise InvalidMemory(f"A memory takes at most {drafting.MAX_TAGS} tags.")


def _apply_archived(revision: revising.Revision, *, archived: bool, now: datetime) -> None:
    is_archived = revision.memory.state == MemoryState.ARCHIVED
    if archived and not is_archived:
        revising.set_state(revision, MemoryState.ARCHIVED, now)
    elif not archived and is_archived:
        revising.set_state(revision, MemoryState.ACTIVE, now)
        revision.restart_curve = True


def tag_memory(
    *, writer: Writer, memory_id: str, add: list[str] | None = None, remove: list[str] | None = None
) -> Memory:
    """Add and remove tags of one memory."""
    changes = MemoryChanges(add_tags=add or [], remove_tags=remove or [])
    return edit_memory(writer=writer, memory_id=memory_id, changes=changes, action="tag")


def pin_memory(*, writer: Writer, memory_id: str, pinned: bool = True) -> Memory:
    """Pin a memory, so that it never fades, or let it go again."""
    return edit_memory(writer=writer, memory_id=memory_id, changes=MemoryChanges(pinned=pinned), action="pin")


def supersede_memory(
    *, writer: Writer, memory_id: str, draft: MemoryDraft, expected_version: int | None = None
) -> Remembered:
    """Store a newer memory in the place of this one, which stays readable and says what replaced it.

    What the draft leaves at its default (scope, kind, tags, importance, subject) it takes from the old one.
    """
    with transaction.atomic():
        old = find_memory(writer, memory_id)
        expect(old, expected_version)
        if old.superseded_by_id is not None:
            raise errors.Conflict(f"{memory_id} was superseded already.")
        inherited = _inherit(draft, old)
        if inherited.content == old.content:
            raise InvalidMemory("The new content is the old one.")
        return remember(writer=writer, drafts=[inherited])[0]


def _inherit(draft: MemoryDraft, old: Memory) -> MemoryDraft:
    from dataclasses import replace

    blank = MemoryDraft(content="")
    return replace(
        draft,
        scope=draft.scope if draft.scope else ScopeNames(**old.scope.as_dict()),
        subject=draft.subject or old.subject,
        kind=draft.kind if draft.kind != blank.kind else old.kind,
        importance=draft.importance if draft.importance != blank.importance else old.importance,
        tags=draft.tags or sorted(old.memory_tags.values_list("tag__name", flat=True)),
        supersedes=old.public_id,
    )


def restore_memory(
    *, writer: Writer, memory_id: str, version: int | None = None, expected_version: int | None = None
) -> Memory:
    """Bring a memory back: out of the trash or the archive, or to the form of an earlier version.

    The curve starts anew from now. A restored form is a new version that says which one it repeats.
    """
    with transaction.atomic():
        memory = find_memory(writer, memory_id, in_trash=True)
        expect(memory, expected_version)
        now = clock.now()
        revision = revising.begin([memory])[0]
        if version is not None:
            row = _find_version(memory, version)
            if row.content is None:
                raise UnknownVersion(f"Version {version} was redacted.")
            take_form(revision, row)
            revision.restored_from = version
        if memory.state in (MemoryState.FORGOTTEN, MemoryState.ARCHIVED):
            revising.set_state(revision, MemoryState.ACTIVE, now)
            revision.operation = "modified"
        if version is None and memory.superseded_by_id is not None:
            memory.superseded_by, memory.superseded_at, memory.valid_until = None, None, None
        if revision.changed:
            revision.restart_curve = True
        revising.commit(writer=writer, action="restore", revisions=[revision], now=now)
        if revision.content_changed:
            leave_embedding_job(writer.workspace)
    return memory


def take_form(revision: revising.Revision, row: MemoryVersion) -> None:
    """Give a revision the form that a version remembers; the state is the caller's business."""
    revision.apply(row.facts, row.content)
    memory = revision.memory
    scope = row.facts.get("scope")
    if scope:
        memory.scope = revising.find_scope(memory.workspace, scope)
    superseded_by = row.facts.get("superseded_by")
    if superseded_by is None or closes_circle(memory.pk, superseded_by):
        memory.superseded_by, memory.superseded_at = None, None
    elif Memory.objects.filter(pk=superseded_by).exists():
        memory.superseded_by_id = superseded_by


def _find_version(memory: Memory, number: int) -> MemoryVersion:
    row = MemoryVersion.objects.filter(memory=memory, number=number).first()
    if row is None:
        raise UnknownVersion(f"{memory.public_id} has no version {number}.")
    return row


def redact_version(*, writer: Writer, version_id: str) -> MemoryVersion:
    """Remove the content of an earlier version and keep its row; adds no version.

    The current head can't be redacted: edit or forget the memory first.
    """
    with transaction.atomic():
        row = (
            MemoryVersion.objects.filter(workspace=writer.workspace, public_id=version_id)
            .select_related("memory__scope")
            .first()
        )
        if row is None:
            raise UnknownVersion(f"There is no version {version_id[:80]} here.")
        memory = find_memory(writer, row.memory.public_id, in_trash=True)
        if row.redacted_at is not None:
            return row
        if row.number == memory.version and memory.state != MemoryState.FORGOTTEN:
            raise HeadCannotBeRedacted("This is the memory's current content; edit or forget the memory first.")
        row.content, row.content_sha256, row.facts = None, "", {}
        row.redacted_at, row.redacted_by = clock.now(), writer.actor.label[:200]
        row.save(update_fields=["content", "content_sha256", "facts", "redacted_at", "redacted_by"])
        record_event(
            workspace=writer.workspace,
            actor=writer.actor,
            action="redact",
            subject_type="memory_version",
            subject_id=row.public_id,
        )
    return row


def last_change_set(memory: Memory) -> ChangeSet | None:
    """The change set of a memory's current version: what an undo reverts."""
    row = MemoryVersion.objects.filter(memory=memory, number=memory.version).select_related("change_set").first()
    return row.change_set if row else None
