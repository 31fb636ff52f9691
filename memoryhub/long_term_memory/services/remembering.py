"""Storing new memories: one at a time from an agent, or thousands from an import, by the same steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock, ids
from memoryhub.long_term_memory.domain import duplicates, text
from memoryhub.long_term_memory.domain.decay import PolicyBook
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryOrigin,
    MemoryState,
    Operation,
    Scope,
    Trust,
)
from memoryhub.long_term_memory.queries.guards import GuardSettings, get_guard_settings
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.rows import insert_rows, new_instance
from memoryhub.long_term_memory.search import documents, embedders
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.drafting import Checked, check_drafts, origin_of
from memoryhub.long_term_memory.services.finding import closes_circle
from memoryhub.long_term_memory.services.known import Known
from memoryhub.long_term_memory.services.proposing import ask_about_quarantined, propose_duplicates
from memoryhub.long_term_memory.services.write_limit import limit_writes
from memoryhub.long_term_memory.services.writer import (
    ClosesCircle,
    MemoryDraft,
    Remembered,
    UnknownMemory,
    Writer,
)
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Agent, Session, Workspace
from memoryhub.workspaces.services import ensure_agent, ensure_sessions

BACKDATED = timedelta(hours=1)  # a memory that is older than this when it arrives counts as imported
NEAR_DUPLICATE_LIMIT = 50  # above so many new memories in one call, a job looks for near duplicates
MAX_REPORTED_TAGS = 20
TRIES = 5  # while others store the same


def remember(
    *,
    writer: Writer,
    drafts: Sequence[MemoryDraft],
    embed: bool = True,
    imported: bool = False,
    file_door: bool = False,
) -> list[Remembered]:
    """Store memories and say for each what became of it, all in one transaction and one change set.

    1. Rules and guards. Nothing is stored when one draft breaks a rule.
    2. Vectors, before the transaction; an embedder that is down leaves them to a job.
    3. Doubles: the same text comes back as it stands, a taken path is an error (with `imported`: a conflict).
    4. Rows, tags, versions, search documents.
    5. Superseded memories, review items, near duplicates.

    `imported` keeps ids, times and counts as they are and reports conflicts instead of raising. `file_door` refuses
    secrets instead of redacting them and stores recalled text as it is.
    """
    settings = get_guard_settings(writer.workspace)
    if not imported:
        limit_writes(writer, len(drafts), settings)
    checked = check_drafts(writer, drafts, settings, file_door=file_door)
    vectors = _embed(checked) if embed else {}
    for _ in range(TRIES - 1):
        try:
            return _store(writer, settings, checked, vectors, imported=imported)
        except IntegrityError:
            continue  # somebody stored one of these texts or paths at the same moment: look again, and find theirs
    return _store(writer, settings, checked, vectors, imported=imported)


def _store(
    writer: Writer, settings: GuardSettings, checked: list[Checked], vectors: dict[int, bytes], *, imported: bool
) -> list[Remembered]:
    with transaction.atomic():
        batch = _Batch(writer, settings, checked, imported=imported, now=clock.now())
        results = batch.store(vectors)
        if len(vectors) < len(batch.created):
            leave_embedding_job(writer.workspace)
    return results


def preview_remember(*, writer: Writer, drafts: Sequence[MemoryDraft]) -> list[Remembered]:
    """What an import of these drafts would make of them; nothing is stored."""
    settings = get_guard_settings(writer.workspace)
    checked = check_drafts(writer, drafts, settings, file_door=False)
    with transaction.atomic():
        batch = _Batch(writer, settings, checked, imported=True, now=clock.now())
        results = batch.preview()
        transaction.set_rollback(True)
    return results


def leave_embedding_job(workspace: Workspace) -> None:
    """Leave one job for all memories that have no vector of the current model yet."""
    if embedders.current().dimensions or embedders.current().model_id:
        minute = int(clock.now().timestamp() // 60)
        enqueue_job(workspace=workspace, kind="embed_memories", idempotency_key=f"embed:{workspace.pk}:{minute}")


def _embed(checked: Sequence[Checked]) -> dict[int, bytes]:
    """The packed vector of each draft by place; empty where the embedder is off or down.

    Neighbours in the source session are embedded as well and summed in; each distinct text is embedded once.
    """
    embedder = embedders.current()
    if not embedder.model_id:
        return {}
    mixtures = [_mixture(c.draft) for c in checked]
    texts = list(dict.fromkeys(text for mixture in mixtures for text, _ in mixture))
    try:
        rows = dict(zip(texts, embedder.embed(texts, "document"), strict=True))
    except embedders.EmbedderUnavailable:
        return {}
    return {
        place: embedders.pack(sum((rows[text] * weight for text, weight in mixture), start=rows[mixture[0][0]] * 0))
        for place, mixture in enumerate(mixtures)
    }


def _mixture(draft: MemoryDraft) -> list[tuple[str, float]]:
    """The texts whose vectors make a memory's, with their weights."""
    own = f"{draft.subject}: {draft.content}" if draft.subject else draft.content
    around = [
        *zip(draft.context_before, documents.BEFORE_TENTHS, strict=False),
        *zip(draft.context_after, documents.AFTER_TENTHS, strict=False),
    ]
    return [(own, 1.0), *((text, tenths / 10) for text, tenths in around if text)]


@dataclass
class _Batch:
    """The drafts of one call inside its transaction."""

    writer: Writer
    settings: GuardSettings
    checked: list[Checked]
    imported: bool
    now: datetime
    created: list[tuple[int, Memory]] = field(default_factory=list)
    results: dict[int, Remembered] = field(default_factory=dict)
    revived: list[Memory] = field(default_factory=list)
    change_set: ChangeSet | None = None
    unknown_agents: set[str] = field(default_factory=set)
    words: list[list[str]] = field(default_factory=list)  # of each draft's text

    @property
    def workspace(self) -> Workspace:
        return self.writer.workspace

    def store(self, vectors: dict[int, bytes]) -> list[Remembered]:
        scopes = self._find_scopes()
        sessions = ensure_sessions(
            workspace=self.workspace, sids=[c.draft.session for c in self.checked if c.draft.session]
        )
        book = get_policy_book(self.workspace)
        self._sort_out(scopes, sessions, book)
        if self.created or self.revived:
            self.change_set = revising.open_set(self.writer, "remember", len(self.created) + len(self.revived))
            self._insert(vectors)
            self._revive()
            self._supersede()
            self._ask_for_review()
        return [self.results[place] for place in range(len(self.checked))]

    def preview(self) -> list[Remembered]:
        """The outcomes alone; the caller rolls back what finding them made."""
        self._sort_out(self._find_scopes(), {}, get_policy_book(self.workspace))
        return [self.results[place] for place in range(len(self.checked))]

    def _find_scopes(self) -> dict[Any, Scope]:
        names = {c.draft.scope for c in self.checked}
        agents = {scope.agent for scope in names if scope.agent}
        known = Agent.objects.filter(workspace=self.workspace, name__in=agents) if agents else Agent.objects.none()
        self.unknown_agents = agents - set(known.values_list("name", flat=True))
        if not self.settings.quarantine_unknown_agents:
            for name in sorted(self.unknown_agents):
                ensure_agent(workspace=self.workspace, name=name)
        return revising.find_scopes(self.workspace, names)

    # --- what each draft becomes -------------------------------------------------------------------------------------
    def _sort_out(self, scopes: dict[Any, Scope], sessions: dict[str, Session], book: PolicyBook) -> None:
        """Decide for each draft, in order, whether it is new; doubles inside the batch count too."""
        self.words = [text.words(c.draft.content) for c in self.checked]
        keys = {
            place: duplicates.dedupe_key(
                c.draft.content, c.draft.valid_from, c.draft.valid_until, c.draft.subject, self.words[place]
            )
            for place, c in enumerate(self.checked)
        }
        known = Known(self.workspace, self.checked, scopes, keys, imported=self.imported)
        for place, c in enumerate(self.checked):
            if c.recalled:
                self.results[place] = _recalled(c)
                continue
            scope = scopes[c.draft.scope]
            twin = known.twin_of(c, scope, keys[place])
            if twin is not None:
                self.results[place] = twin if isinstance(twin, Remembered) else self._duplicate(twin)
                continue
            memory = self._new_memory(c, scope, sessions, book, keys[place])
            forgotten = known.forgotten.get((scope.pk, memory.content_sha256)) if memory.path is None else None
            flags = [*c.flags, *(["forgotten_before"] if forgotten else [])]
            memory.flags = flags
            known.add(memory, keys[place])
            self.created.append((place, memory))
            self.results[place] = Remembered(
                outcome="created",
                id=memory.public_id,
                state=memory.state,
                trust=memory.trust,
                flags=flags,
                redactions=c.redactions,
                restorable=forgotten,
            )

    def _duplicate(self, memory: Memory) -> Remembered:
        """The text stands here already; saying it again brings an archived memory back."""
        if memory.state == MemoryState.ARCHIVED and not self.imported:
            self.revived.append(memory)
        return Remembered(
            outcome="duplicate", id=memory.public_id, state=memory.state, trust=memory.trust, version=memory.version
        )

    def _new_memory(self, c: Checked, scope: Scope, sessions: dict[str, Session], book: PolicyBook, key: str) -> Memory:
        draft, now = c.draft, self.now
        created_at = draft.created_at or now
        trust = c.trust
        if self.settings.quarantine_unknown_agents and draft.scope.agent in self.unknown_agents:
            trust = Trust.QUARANTINED
        memory: Memory = new_instance(
            Memory,
            {
                "workspace": self.workspace,
                "scope": scope,
                "store": draft.store,
                "session": sessions.get(draft.session or ""),
                "superseded_by": None,
            },
            public_id=draft.public_id or ids.new_id("mem"),
            event_id=draft.event or "",
            subject=draft.subject,
            content=draft.content,
            path=draft.path,
            kind=draft.kind,
            importance=draft.importance,
            pinned=draft.pinned,
            state=draft.state,
            state_since=now if draft.state == MemoryState.ACTIVE else created_at,
            state_by_curve=True,
            trashed_at=now if draft.state == MemoryState.FORGOTTEN else None,
            trust=trust,
            created_at=created_at,
            content_changed_at=draft.content_changed_at or created_at,
            metadata_changed_at=draft.metadata_changed_at or draft.content_changed_at or created_at,
            last_accessed_at=draft.last_accessed_at,
            access_count=draft.access_count,
            imported_at=now if self.imported or now - created_at > BACKDATED else None,
            valid_from=draft.valid_from,
            valid_until=draft.valid_until,
            expires_at=draft.expires_at,
        )
        if draft.state == MemoryState.ARCHIVED:
            memory.state_since = now  # the time until it is forgotten starts with the import
        revising.redraw(memory, draft.tags, book, now)
        revising.identify(memory, key)
        return memory

    # --- rows --------------------------------------------------------------------------------------------------------
    def _insert(self, vectors: dict[int, bytes]) -> None:
        memories = [memory for _, memory in self.created]
        insert_rows(memories)
        fresh = []
        model_id = revising.current_model_id() if vectors else None
        rows = []
        for place, memory in self.created:
            draft = self.checked[place].draft
            document = documents.build_document(
                memory, draft.context_before, draft.context_after, vectors.get(place), self.words[place]
            )
            document.model_id = model_id if document.vector else None
            rows.append(document)
            revision = revising.Revision(memory, draft.tags, is_new=True)
            revision.operation = Operation.CREATED
            fresh.append(revision)
        revising.write_tags(self.workspace, fresh)
        assert self.change_set is not None
        insert_rows([revising.version_of(revision, self.writer, self.change_set, self.now) for revision in fresh])
        insert_rows(rows)
        term_index().add([(row.key, documents.index_tokens(row)) for row in rows])
        origins = [(memory, origin_of(self.checked[place].draft)) for place, memory in self.created]
        insert_rows([MemoryOrigin(memory=memory, data=data) for memory, data in origins if data])

    def _revive(self) -> None:
        """Bring back archived memories whose text was said again."""
        revived = revising.begin(self.revived)
        for revision in revived:
            revising.set_state(revision, MemoryState.ACTIVE, self.now)
            revision.restart_curve = True
        revising.commit(
            writer=self.writer, action="remember", revisions=revived, now=self.now, change_set=self.change_set
        )
        for revision in revived:
            for place, result in self.results.items():
                if result.id == revision.memory.public_id:
                    self.results[place] = Remembered(
                        outcome="duplicate",
                        id=result.id,
                        state=revision.memory.state,
                        trust=revision.memory.trust,
                        version=revision.memory.version,
                        flags=["restored"],
                    )

    def _supersede(self) -> None:
        pairs = [
            (memory, self.checked[p].draft.supersedes) for p, memory in self.created if self.checked[p].draft.supersedes
        ]
        for memory, old_id in pairs:
            old = Memory.objects.select_related("scope").filter(workspace=self.workspace, public_id=old_id).first()
            if old is None or not _reaches(self.writer, old):
                if self.imported:
                    continue
                raise UnknownMemory(f"There is no memory {old_id} to supersede.")
            supersede_row(self.writer, old, memory, self.now, self.change_set)

    def _ask_for_review(self) -> None:
        quarantined = [memory for _, memory in self.created if memory.trust == Trust.QUARANTINED]
        ask_about_quarantined(workspace=self.workspace, memories=quarantined, now=self.now)
        if not self.settings.find_duplicates:
            return
        candidates = [memory for _, memory in self.created if memory.path is None and memory.trust != Trust.QUARANTINED]
        if len(candidates) <= NEAR_DUPLICATE_LIMIT and not self.imported:
            propose_duplicates(workspace=self.workspace, memories=candidates, now=self.now)


def _recalled(c: Checked) -> Remembered:
    return Remembered(outcome="recalled", id="", flags=["recalled"], detail="This text came from a recall.")


def _reaches(writer: Writer, memory: Memory) -> bool:
    binding = writer.binding
    scope = memory.scope
    return all(
        wanted is None or wanted == actual
        for wanted, actual in (
            (binding.agent, scope.agent),
            (binding.user, scope.user),
            (binding.project, scope.project),
        )
    )


def supersede_row(writer: Writer, old: Memory, new: Memory, now: datetime, change_set: ChangeSet | None) -> None:
    """Put the new memory in the old one's place: the old stays readable, and valid until the new began.

    Raises ClosesCircle where the old one stands in the new one's place already: both would be gone from recall.
    """
    if closes_circle(old.pk, new.pk):
        raise ClosesCircle(f"{old.public_id} stands in the place of {new.public_id}: that would close a circle.")
    revision = revising.begin([old])[0]
    old.superseded_by = new
    old.superseded_at = new.valid_from or now
    if old.valid_until is None or old.valid_until > old.superseded_at:
        old.valid_until = max(old.superseded_at, old.valid_from) if old.valid_from else old.superseded_at
    revising.commit(writer=writer, action="supersede", revisions=[revision], now=now, change_set=change_set)
