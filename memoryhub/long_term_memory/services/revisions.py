"""The one way in which a stored memory changes: rows, tags, versions, curve and search documents together.

A service loads memories with `begin`, changes their fields and tags, and hands the revisions to `commit`. A revision
that changes nothing writes nothing. Ten thousand revisions are a handful of prepared statements.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set
from memoryhub.common import ids
from memoryhub.common.many_rows import insert_many
from memoryhub.common.plain_query import PlainQuery
from memoryhub.long_term_memory.domain.forms import TIMES, differing, unpack_time
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import (
    EmbeddingModel,
    Memory,
    MemoryState,
    MemoryTag,
    MemoryVersion,
    Operation,
    Scope,
    SearchDocument,
    Tag,
)
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.rows import (
    asked_for,
    execute_many,
    insert_rows,
    light_row,
    new_instance,
    update_memories,
)
from memoryhub.long_term_memory.search import documents, embedders
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.long_term_memory.services.clashes import find_text_twins
from memoryhub.long_term_memory.services.deriving import facts_of, identify, redraw
from memoryhub.long_term_memory.services.places import check_places
from memoryhub.long_term_memory.services.writer import ChangedMeanwhile, TextTaken, Writer
from memoryhub.workspaces.models import Workspace

UPDATED = (
    "scope", "subject", "content", "content_sha256", "dedupe_key", "path", "kind", "importance", "pinned", "flags",
    "version", "state", "state_since", "state_by_curve", "trashed_at", "trust", "superseded_by", "superseded_at",
    "content_changed_at", "metadata_changed_at", "valid_from", "valid_until", "expires_at", "decay_anchor_at",
    "idle_since", "daily_loss", "floor", "fades_at", "archives_at", "forgets_at", "strength", "strength_at",
    "access_count", "last_accessed_at",
)  # fmt: skip
CHUNK = 500
SCOPES_AT_ONCE = 250


class Revision:
    """One memory on its way to its next version."""

    def __init__(self, memory: Memory, tags: Iterable[str]) -> None:
        self.memory = memory
        self.old_tags = frozenset(tags)
        self.tags = set(tags)
        self.old_facts = facts_of(memory, memory.scope.as_dict(), tags)
        self.old_content = memory.content
        self.old_key = memory.document_key
        self.operation: str = Operation.MODIFIED
        self.restored_from: int | None = None
        self.restart_curve = False

    @property
    def content_changed(self) -> bool:
        return self.memory.content != self.old_content

    @property
    def changed_facts(self) -> list[str]:
        return differing(self.old_facts, facts_of(self.memory, self.memory.scope.as_dict(), self.tags))

    @property
    def changed(self) -> bool:
        return self.content_changed or bool(self.changed_facts)

    def apply(self, facts: dict[str, Any], content: str | None) -> None:
        """Take the form of an earlier version; scope is looked up by the caller."""
        memory = self.memory
        for name in ("subject", "kind", "importance", "pinned", "path", "trust"):
            if name in facts:
                setattr(memory, name, facts[name])
        for name in TIMES:
            if name in facts:
                setattr(memory, name, unpack_time(facts[name]))
        if "tags" in facts:
            self.tags = set(facts["tags"])
        if content is not None:
            memory.content = content


def begin(memories: Iterable[Memory]) -> list[Revision]:
    """Revisions of memories, with their tags loaded in one query per chunk."""
    rows = list(memories)
    tags: dict[int, list[str]] = {memory.pk: [] for memory in rows}
    for start in range(0, len(rows), CHUNK):
        chunk = [memory.pk for memory in rows[start : start + CHUNK]]
        for memory_id, name in MemoryTag.objects.filter(memory_id__in=chunk).values_list("memory_id", "tag__name"):
            tags[memory_id].append(name)
    return [Revision(memory, tags[memory.pk]) for memory in rows]


def set_state(revision: Revision, state: str, now: datetime) -> None:
    """Move a memory because somebody said so."""
    memory = revision.memory
    if memory.state == MemoryState.FORGOTTEN != state:
        memory.trashed_at = None
    memory.state, memory.state_since, memory.state_by_curve = state, now, False
    if state == MemoryState.FORGOTTEN:
        memory.trashed_at = now
        revision.operation = Operation.DELETED


def open_set(writer: Writer, action: str, count: int) -> ChangeSet:
    """The change set that a write belongs to: its own, or the one the writer has open."""
    if writer.change_set is not None:
        return writer.change_set
    return open_change_set(
        workspace=writer.workspace,
        actor=writer.actor,
        action=action,
        reason=writer.reason,
        door=writer.door,
        subject_count=count,
    )


def commit(
    *,
    writer: Writer,
    action: str,
    revisions: Sequence[Revision],
    now: datetime,
    change_set: ChangeSet | None = None,
    vectors: dict[int, bytes] | None = None,
) -> ChangeSet | None:
    """Write the revisions that change something, and return their change set; None where nothing changes.

    Raises ChangedMeanwhile where a row moved on since it was loaded. Call it inside a transaction.
    """
    changed = [revision for revision in revisions if revision.changed or revision.restart_curve]
    if not changed:
        return None
    book = get_policy_book(writer.workspace)
    opened = change_set or open_set(writer, action, len(changed))
    for revision in changed:
        memory = revision.memory
        if revision.restart_curve:
            memory.decay_anchor_at = now
        if revision.content_changed:
            memory.content_changed_at = now
        if revision.changed_facts or not revision.content_changed:
            memory.metadata_changed_at = now
        memory.version += 1
        redraw(memory, revision.tags, book, now)
        identify(memory)
    _refuse_clashes(changed)
    for start in range(0, len(changed), CHUNK):
        chunk = changed[start : start + CHUNK]
        if not update_memories([revision.memory for revision in chunk], UPDATED):
            raise ChangedMeanwhile("Somebody else changed one of these memories; read it again.")
    write_tags(writer.workspace, changed)
    insert_rows([version_of(revision, writer, opened, now) for revision in changed])
    refresh_documents(changed, vectors or {})
    return opened


_PLACING = frozenset({"path", "scope", "state"})
_TELLING_APART = _PLACING | {"subject", "superseded_by", "valid_from", "valid_until"}


def _refuse_clashes(revisions: Sequence[Revision]) -> None:
    """Say in words what the unique constraints would refuse: a path or a text that stands in the scope already."""
    placed, told = [], []
    for revision in revisions:
        memory, facts = revision.memory, set(revision.changed_facts)
        if memory.path is not None and memory.state != MemoryState.FORGOTTEN and facts & _PLACING:
            placed.append(memory)
        if revision.content_changed or facts & _TELLING_APART:
            told.append(memory)
    for other in find_text_twins(told).values():
        raise TextTaken("This scope holds the same text already.", conflicting_id=other.public_id)
    check_places(placed)


def version_of(revision: Revision, writer: Writer, change_set: ChangeSet, now: datetime) -> MemoryVersion:
    """The version row of a memory as it is now."""
    memory = revision.memory
    version: MemoryVersion = light_row(
        MemoryVersion,
        memory_id=memory.id,
        public_id=ids.new_id("memver"),
        number=memory.version,
        operation=revision.operation,
        content=memory.content,
        content_sha256=memory.content_sha256,
        facts=facts_of(memory, memory.scope.as_dict(), revision.tags),
        restored_from=revision.restored_from,
        **marks_of(writer, change_set),
        created_at=now,
    )
    return version


def marks_of(writer: Writer, change_set: ChangeSet) -> dict[str, Any]:
    """What each version row tells of its write: who, why, in which change set."""
    return {
        "workspace_id": writer.workspace.pk,
        "reason": writer.reason[:500],
        "actor_kind": writer.actor.kind,
        "actor_id": writer.actor.id[:64],
        "actor_label": writer.actor.label[:200],
        "session_id": writer.session.pk if writer.session else None,
        "change_set_id": change_set.pk,
    }


def tag_ids(workspace: Workspace, names: Iterable[str]) -> dict[str, int]:
    """The ids of tags by name, new ones made."""
    wanted = set(names)
    if not wanted:
        return {}
    known = dict(Tag.objects.filter(workspace=workspace, name__in=wanted).values_list("name", "id"))
    missing = wanted - known.keys()
    if missing:
        Tag.objects.bulk_create(
            [Tag(workspace=workspace, name=name) for name in sorted(missing)], ignore_conflicts=True
        )
        known = dict(Tag.objects.filter(workspace=workspace, name__in=wanted).values_list("name", "id"))
    return known


def write_tags(workspace: Workspace, revisions: Sequence[Revision]) -> None:
    """Add and remove exactly the tags that differ."""
    names = tag_ids(workspace, {name for revision in revisions for name in revision.tags ^ revision.old_tags})
    removed = [(r.memory.id, names[name]) for r in revisions for name in sorted(r.old_tags - r.tags)]
    insert_tags([(r.memory.id, name) for r in revisions for name in sorted(r.tags - r.old_tags)], names)
    execute_many("DELETE FROM long_term_memory_memorytag WHERE memory_id = %s AND tag_id = %s", removed)


def insert_tags(added: Iterable[tuple[int, str]], names: Mapping[str, int]) -> None:
    """Give memories tags by name; `names` are the tags' ids."""
    rows = [(memory_id, names[name]) for memory_id, name in added]
    insert_many(MemoryTag._meta.db_table, ("memory_id", "tag_id"), rows)


def refresh_documents(revisions: Sequence[Revision], vectors: dict[int, bytes]) -> None:
    """Bring the search documents in line: anew where the text or scope changed, else only their facts."""
    moved = [
        revision
        for revision in revisions
        if revision.content_changed or {"subject", "scope"} & set(revision.changed_facts)
    ]
    if moved:
        rebuild_documents(moved, vectors)
    ids_moved = {revision.memory.pk for revision in moved}
    update_document_facts([revision.memory for revision in revisions if revision.memory.pk not in ids_moved])


def rebuild_documents(revisions: Sequence[Revision], vectors: dict[int, bytes]) -> None:
    """Replace documents whose text or place changed; a vector of an older text is dropped unless a new one is given."""
    index = term_index()
    old = list(SearchDocument.objects.filter(key__in=[revision.old_key for revision in revisions]))
    index.remove([(document.key, documents.index_tokens(document)) for document in old])
    SearchDocument.objects.filter(key__in=[document.key for document in old]).delete()
    kept = {document.key: document for document in old}
    rows = []
    for revision in revisions:
        before = kept.get(revision.old_key)
        document = documents.build_document(revision.memory, vector=vectors.get(revision.memory.pk))
        same_text = not revision.content_changed and "subject" not in revision.changed_facts
        if before is not None and same_text:
            document.vector, document.model_id = before.vector, before.model_id
            document.terms, document.counts = before.terms, before.counts
            document.token_count, document.has_context = before.token_count, before.has_context
        elif document.vector is not None:
            document.model_id = current_model_id()
        rows.append(document)
    insert_rows(rows)
    index.add([(document.key, documents.index_tokens(document)) for document in rows])


def current_model_id() -> int | None:
    """The row id of the embedder in use."""
    name = embedders.current().model_id
    if not name:
        return None
    known = _MODEL.fetch([name])
    return known[0] if known else EmbeddingModel.objects.get_or_create(name=name)[0].pk


_MODEL = PlainQuery("SELECT id FROM long_term_memory_embeddingmodel WHERE name = %s")


def update_document_facts(memories: Sequence[Memory]) -> None:
    """Copy changed ranking facts into the search documents."""
    names = documents.FACTS
    sets = ", ".join(f"{name} = %s" for name in names)
    rows = [documents.fill_facts(SearchDocument(key=memory.document_key), memory) for memory in memories]
    execute_many(
        f"UPDATE long_term_memory_searchdocument SET {sets} WHERE key = %s",  # noqa: S608
        [(*(getattr(row, name) for name in names), row.key) for row in rows],
    )


def find_scope(workspace: Workspace, names: dict[str, str | None]) -> Scope:
    """The scope row of these names, made on first use."""
    wanted = ScopeNames(**names)
    return find_scopes(workspace, [wanted])[wanted]


def find_scopes(workspace: Workspace, wanted: Collection[ScopeNames]) -> dict[ScopeNames, Scope]:
    """The scope rows of many names, the missing ones made; a few queries, however many there are."""
    found: dict[ScopeNames, Scope] = {}
    missing = list(wanted)
    for attempt in (1, 2):
        for start in range(0, len(missing), SCOPES_AT_ONCE):
            found |= _load_scopes(workspace, missing[start : start + SCOPES_AT_ONCE])
        missing = [names for names in wanted if names not in found]
        if missing and attempt == 1:
            rows = [Scope(workspace=workspace, **_columns(names)) for names in missing]
            Scope.objects.bulk_create(rows, ignore_conflicts=True)
    return found


def _load_scopes(workspace: Workspace, wanted: Sequence[ScopeNames]) -> dict[ScopeNames, Scope]:
    """Each name is one seek of the index."""
    if not wanted:
        return {}
    asked, values = asked_for(("agent", "person", "project"), [tuple(_columns(names).values()) for names in wanted])
    with connection.cursor() as cursor:
        cursor.execute(
            f'{asked} SELECT s.id, s.agent, s."user", s.project'  # noqa: S608 - our own names, bound values
            f" FROM asked CROSS JOIN {Scope._meta.db_table} s WHERE s.workspace_id = %s"
            ' AND s.agent = asked.agent AND s."user" = asked.person AND s.project = asked.project',
            [*values, workspace.pk],
        )
        rows = cursor.fetchall()
    found = {}
    for pk, agent, user, project in rows:
        scope = new_instance(Scope, {"workspace": workspace}, id=pk, agent=agent, user=user, project=project)
        scope._state.adding, scope._state.db = False, "default"
        found[ScopeNames(agent or None, user or None, project or None)] = scope
    return found


def _columns(names: ScopeNames) -> dict[str, str]:
    return {name: value or "" for name, value in names.as_dict().items()}
