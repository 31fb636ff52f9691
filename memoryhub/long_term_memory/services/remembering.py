"""Storing new memories: one at a time from an agent, or thousands from an import, by the same steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryOrigin,
    MemoryState,
    MemoryVersion,
    Scope,
    SearchDocument,
    Trust,
)
from memoryhub.long_term_memory.queries.guards import GuardSettings, get_guard_settings
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.rows import (
    converted,
    insert_rows,
    insert_values,
    light_row,
    mark_stored,
    relate,
    reserve_ids,
    with_values,
)
from memoryhub.long_term_memory.search import documents, embedders
from memoryhub.long_term_memory.search.index import term_index
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.finding import closes_circle
from memoryhub.long_term_memory.services.known import Known, Standing
from memoryhub.long_term_memory.services.preparing import Preparation, Prepared
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
    prepared = Preparation.by(writer, settings, imported=imported, file_door=file_door).prepare_all(drafts)
    return remember_prepared(writer=writer, prepared=prepared, embed=embed, imported=imported)


def remember_prepared(
    *, writer: Writer, prepared: list[Prepared], embed: bool = False, imported: bool = False
) -> list[Remembered]:
    """Steps 2 to 5 of `remember`, for drafts that were prepared before by the same guards."""
    settings = get_guard_settings(writer.workspace)
    vectors = _embed(prepared) if embed else {}
    for _ in range(TRIES - 1):
        try:
            return _store(writer, settings, prepared, vectors, imported=imported)
        except IntegrityError:
            continue  # somebody stored one of these texts or paths at the same moment: look again, and find theirs
    return _store(writer, settings, prepared, vectors, imported=imported)


def _store(
    writer: Writer, settings: GuardSettings, prepared: list[Prepared], vectors: dict[int, bytes], *, imported: bool
) -> list[Remembered]:
    with transaction.atomic():
        batch = _Batch(writer, settings, prepared, imported=imported, now=clock.now())
        results = batch.store(vectors)
        if len(vectors) < len(batch.created):
            leave_embedding_job(writer.workspace)
    return results


def preview_prepared(*, writer: Writer, prepared: list[Prepared]) -> list[Remembered]:
    """What an import of these drafts would make of them; nothing is stored."""
    with transaction.atomic():
        batch = _Batch(writer, get_guard_settings(writer.workspace), prepared, imported=True, now=clock.now())
        results = batch.preview()
        transaction.set_rollback(True)
    return results


def leave_embedding_job(workspace: Workspace) -> None:
    """Leave one job for all memories that have no vector of the current model yet."""
    if embedders.current().dimensions or embedders.current().model_id:
        minute = int(clock.now().timestamp() // 60)
        enqueue_job(workspace=workspace, kind="embed_memories", idempotency_key=f"embed:{workspace.pk}:{minute}")


def _embed(prepared: Sequence[Prepared]) -> dict[int, bytes]:
    """The packed vector of each draft by place; empty where the embedder is off or down.

    Neighbours in the source session are embedded as well and summed in; each distinct text is embedded once.
    """
    embedder = embedders.current()
    if not embedder.model_id:
        return {}
    mixtures = [_mixture(c.draft) for c in prepared]
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


@dataclass(slots=True)
class _New:
    """One new memory of a batch."""

    place: int
    c: Prepared
    scope: Scope
    session_id: int | None
    pk: int = 0
    version: int = 1
    more_flags: tuple[str, ...] = ()

    @property
    def scope_id(self) -> int:
        return self.scope.pk

    @property
    def public_id(self) -> str:
        return self.c.public_id

    @property
    def content(self) -> str:
        return self.c.draft.content

    @property
    def path(self) -> str | None:
        return self.c.draft.path

    @property
    def state(self) -> str:
        return self.c.state

    @property
    def trust(self) -> str:
        return self.c.trust

    @property
    def flags(self) -> list[str]:
        return [*self.c.flags, *self.more_flags]


@dataclass
class _Batch:
    """The drafts of one call inside its transaction."""

    writer: Writer
    settings: GuardSettings
    prepared: list[Prepared]
    imported: bool
    now: datetime
    created: list[_New] = field(default_factory=list)
    results: dict[int, Remembered] = field(default_factory=dict)
    revived: list[Memory] = field(default_factory=list)
    change_set: ChangeSet | None = None
    unknown_agents: set[str] = field(default_factory=set)

    @property
    def workspace(self) -> Workspace:
        return self.writer.workspace

    def store(self, vectors: dict[int, bytes]) -> list[Remembered]:
        scopes = self._find_scopes()
        sessions = ensure_sessions(
            workspace=self.workspace, sids=[c.draft.session for c in self.prepared if c.draft.session]
        )
        self._sort_out(scopes, sessions)
        if self.created or self.revived:
            self.change_set = revising.open_set(self.writer, "remember", len(self.created) + len(self.revived))
            self._insert(vectors)
            self._revive()
            self._supersede()
            self._ask_for_review()
        return [self.results[place] for place in range(len(self.prepared))]

    def preview(self) -> list[Remembered]:
        """The outcomes alone; the caller rolls back what finding them made."""
        self._sort_out(self._find_scopes(), {})
        return [self.results[place] for place in range(len(self.prepared))]

    def _find_scopes(self) -> dict[Any, Scope]:
        names = {c.draft.scope for c in self.prepared}
        agents = {scope.agent for scope in names if scope.agent}
        known = Agent.objects.filter(workspace=self.workspace, name__in=agents) if agents else Agent.objects.none()
        self.unknown_agents = agents - set(known.values_list("name", flat=True))
        if not self.settings.quarantine_unknown_agents:
            for name in sorted(self.unknown_agents):
                ensure_agent(workspace=self.workspace, name=name)
        return revising.find_scopes(self.workspace, names)

    # --- what each draft becomes -------------------------------------------------------------------------------------
    def _sort_out(self, scopes: dict[Any, Scope], sessions: dict[str, Session]) -> None:
        """Decide for each draft, in order, whether it is new; doubles inside the batch count too."""
        known = Known(self.workspace, self.prepared, scopes, imported=self.imported)
        for place, c in enumerate(self._as_of_now()):
            if c.recalled:
                self.results[place] = _recalled(c)
                continue
            scope = scopes[c.draft.scope]
            twin = known.twin_of(c, scope)
            if twin is not None:
                self.results[place] = twin if isinstance(twin, Remembered) else self._duplicate(twin)
                continue
            session = sessions.get(c.draft.session) if c.draft.session else None
            new = _New(place, c, scope, session.pk if session else None)
            forgotten = known.forgotten.get((scope.pk, c.content_sha256)) if c.draft.path is None else None
            if forgotten:
                new.more_flags = ("forgotten_before",)
            known.add(new, c)
            self.created.append(new)
            self.results[place] = Remembered(
                outcome="created",
                id=c.public_id,
                state=c.state,
                trust=c.trust,
                flags=new.flags,
                redactions=c.redactions,
                restorable=forgotten,
            )

    def _as_of_now(self) -> list[Prepared]:
        """The drafts under the policy in force, those of unknown agents quarantined where the workspace wants that."""
        book = get_policy_book(self.workspace)
        stale = any(other != book for other in {id(c.book): c.book for c in self.prepared}.values())
        strangers = self.unknown_agents if self.settings.quarantine_unknown_agents else set()
        if not stale and not strangers:
            return self.prepared
        preparation = Preparation(self.writer.binding, self.settings, book, self.imported)
        return [
            preparation.again(
                c, self.now, trust=Trust.QUARANTINED.value if c.draft.scope.agent in strangers else c.trust
            )
            if stale or c.draft.scope.agent in strangers
            else c
            for c in self.prepared
        ]

    def _duplicate(self, memory: Standing) -> Remembered:
        """The text stands here already; saying it again brings an archived memory back."""
        if isinstance(memory, Memory) and memory.state == MemoryState.ARCHIVED and not self.imported:
            self.revived.append(memory)
        return Remembered(
            outcome="duplicate", id=memory.public_id, state=memory.state, trust=memory.trust, version=memory.version
        )

    # --- rows --------------------------------------------------------------------------------------------------------
    def _insert(self, vectors: dict[int, bytes]) -> None:
        workspace_id, change_set = self.workspace.pk, self.change_set
        assert change_set is not None
        by_whom = revising.marks_of(self.writer, change_set)
        model_id = revising.current_model_id() if vectors else None
        memories, versions, docs, index = [], [], [], []
        count = len(self.created)
        keys = zip(reserve_ids(Memory, count), reserve_ids(MemoryVersion, count), strict=True)
        for new, (pk, version_id) in zip(self.created, keys, strict=True):
            new.pk = pk
            rows, draft = new.c.rows, new.c.draft
            own: dict[str, Any] = {
                "id": pk,
                "workspace_id": workspace_id,
                "scope_id": new.scope_id,
                "store_id": draft.store.pk if draft.store else None,
                "session_id": new.session_id,
            }
            if new.more_flags:
                own["flags"] = converted(Memory, "flags", new.flags)
            memories.append(with_values(Memory, rows.memory, own))
            versions.append(with_values(MemoryVersion, rows.version, {**by_whom, "id": version_id, "memory_id": pk}))
            key, vector = documents.document_key(new.scope_id, pk), vectors.get(new.place)
            its: dict[str, Any] = {"key": key, "workspace_id": workspace_id, "session_id": new.session_id}
            if vector is not None:
                its |= {"vector": vector, "model_id": model_id}
            docs.append(with_values(SearchDocument, rows.document, its))
            index.append((key, documents.tokens_of(key, workspace_id, rows.terms)))
        insert_values(Memory, memories)
        self._insert_tags()
        insert_values(MemoryVersion, versions)
        insert_values(SearchDocument, docs)
        term_index().add(index)
        origins = [(new.pk, dict(new.c.draft.origin)) for new in self.created if new.c.draft.origin]
        insert_rows([light_row(MemoryOrigin, memory_id=pk, data=data) for pk, data in origins])

    def _insert_tags(self) -> None:
        names = revising.tag_ids(self.workspace, {name for new in self.created for name in new.c.draft.tags})
        tags = ((new.pk, name) for new in self.created for name in sorted(set(new.c.draft.tags)))
        revising.insert_tags(tags, names)

    def _objects(self, new: Sequence[_New]) -> list[Memory]:
        """The rows of new memories as objects: those that were prepared here, the others loaded."""
        if any(one.c.memory is None for one in new):
            found = Memory.objects.select_related("scope").in_bulk([one.pk for one in new])
            return [found[one.pk] for one in new]
        out = []
        for one in new:
            memory = one.c.memory
            assert memory is not None
            memory.pk, memory.flags = one.pk, one.flags
            related = {
                "workspace": self.workspace,
                "scope": one.scope,
                "store": one.c.draft.store,
                "superseded_by": None,
            }
            relate(memory, related)
            memory.session_id = one.session_id
            mark_stored(memory)
            out.append(memory)
        return out

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
        superseding = [new for new in self.created if new.c.draft.supersedes]
        for new, memory in zip(superseding, self._objects(superseding), strict=True):
            old_id = new.c.draft.supersedes
            old = Memory.objects.select_related("scope").filter(workspace=self.workspace, public_id=old_id).first()
            if old is None or not _reaches(self.writer, old):
                if self.imported:
                    continue
                raise UnknownMemory(f"There is no memory {old_id} to supersede.")
            supersede_row(self.writer, old, memory, self.now, self.change_set)

    def _ask_for_review(self) -> None:
        quarantined = [new for new in self.created if new.trust == Trust.QUARANTINED]
        ask_about_quarantined(workspace=self.workspace, memories=self._objects(quarantined), now=self.now)
        if not self.settings.find_duplicates or self.imported:
            return
        candidates = [new for new in self.created if new.path is None and new.trust != Trust.QUARANTINED]
        if len(candidates) <= NEAR_DUPLICATE_LIMIT:
            propose_duplicates(workspace=self.workspace, memories=self._objects(candidates), now=self.now)


def _recalled(c: Prepared) -> Remembered:
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
