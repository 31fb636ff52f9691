"""From a draft to the rows of a new memory, without a database: rules, guards, the text's terms, the curve.

So a second process can prepare the next chunk of an import while the last one is being stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from memoryhub.common import clock, ids
from memoryhub.long_term_memory.domain import duplicates, guards, text
from memoryhub.long_term_memory.domain.decay import PolicyBook
from memoryhub.long_term_memory.models import (
    Memory,
    MemoryState,
    MemoryVersion,
    Operation,
    SearchDocument,
    Trust,
)
from memoryhub.long_term_memory.queries.guards import GuardSettings, get_guard_settings
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.rows import light_row, new_instance, values_of
from memoryhub.long_term_memory.search import documents
from memoryhub.long_term_memory.services.deriving import facts_of, identify, redraw
from memoryhub.long_term_memory.services.drafting import check_draft
from memoryhub.long_term_memory.services.writer import (
    HoldsSecrets,
    InvalidMemory,
    MemoryDraft,
    MemoryTooLarge,
    Writer,
)
from memoryhub.workspaces.principals import Binding

BACKDATED = timedelta(hours=1)  # a memory that is older than this when it arrives counts as imported


class NewRows(NamedTuple):
    """The rows of a new memory as the driver takes them, without the ids of what they belong to."""

    memory: tuple[Any, ...]
    version: tuple[Any, ...]
    document: tuple[Any, ...]
    terms: bytes  # of the document


class Prepared(NamedTuple):
    """A draft that passed the rules, with what the guards said and the rows that it becomes."""

    draft: MemoryDraft
    public_id: str
    state: str  # the draft's, or fading where its curve says so
    trust: str
    flags: tuple[str, ...]
    redactions: int
    recalled: bool
    key: str  # of its text: what may exist only once per scope, where it has no path
    content_sha256: str
    rows: NewRows
    book: PolicyBook  # whose curve the rows hold
    memory: Memory | None  # the first row as an object; it does not travel

    def __reduce__(self) -> tuple[Any, ...]:
        return Prepared, (*self[:-1], None)


@dataclass(frozen=True, slots=True)
class Preparation:
    """How drafts are prepared: for whom, under which guards and decay policy, as an import, through a file door."""

    binding: Binding
    settings: GuardSettings
    book: PolicyBook
    imported: bool = False
    file_door: bool = False

    @classmethod
    def by(
        cls, writer: Writer, settings: GuardSettings, *, imported: bool = False, file_door: bool = False
    ) -> "Preparation":
        return cls(writer.binding, settings, get_policy_book(writer.workspace), imported, file_door)

    @classmethod
    def for_import(cls, writer: Writer) -> "Preparation":
        return cls.by(writer, get_guard_settings(writer.workspace), imported=True)

    def prepare_all(self, drafts: Sequence[MemoryDraft]) -> list[Prepared]:
        """Prepare every draft before anything is stored; an error names the draft by its place in the list."""
        prepared, now = [], clock.now()
        for place, draft in enumerate(drafts):
            try:
                prepared.append(self.prepare(draft, now))
            except (InvalidMemory, MemoryTooLarge, HoldsSecrets) as error:
                error.errors = [{"in": "body", "field": f"items.{place}", "message": error.detail}]
                raise
        return prepared

    def prepare(self, draft: MemoryDraft, now: datetime) -> Prepared:
        """Check one draft by the rules, run the guards, read its text and draw its curve.

        Raises InvalidMemory, MemoryTooLarge, HoldsSecrets or OutsideBinding.
        """
        draft = check_draft(draft, self.binding)
        report = guards.inspect(
            draft.content,
            redact=self.settings.redact_secrets and not self.file_door,
            quarantine_instructions=self.settings.quarantine_instructions,
        )
        if self.file_door and self.settings.redact_secrets and report.redactions:
            # A file door refuses secrets, since the hashes that its callers hold must stay true.
            raise HoldsSecrets("The text holds a secret (a key, a token or a password); take it out and write again.")
        if report.content != draft.content:
            draft = replace(draft, content=report.content)
        recalled = report.recalled and self.settings.skip_recalled and not self.file_door
        trust = _trust(draft, suspicious=report.suspicious)
        return self._rows(draft, trust, report.flags, report.redactions, now, recalled=recalled)

    def again(self, prepared: Prepared, now: datetime, *, trust: str) -> Prepared:
        """The same under this preparation's policy and with this trust."""
        draft = replace(prepared.draft, public_id=prepared.public_id)
        made = self._rows(draft, trust, prepared.flags, prepared.redactions, now, recalled=prepared.recalled)
        return made._replace(draft=prepared.draft)

    def _rows(
        self, draft: MemoryDraft, trust: str, flags: tuple[str, ...], redactions: int, now: datetime, *, recalled: bool
    ) -> Prepared:
        words = text.words(draft.content)
        key = duplicates.dedupe_key(draft.content, draft.valid_from, draft.valid_until, draft.subject, words)
        memory = self._new_memory(draft, trust, flags, key, now)
        read = documents.read_text(
            draft.content,
            draft.subject,
            memory.created_at.date(),
            draft.context_before,
            draft.context_after,
            words,
        )
        version = light_row(
            MemoryVersion,
            public_id=ids.new_id("memver"),
            number=1,
            operation=Operation.CREATED,
            content=memory.content,
            content_sha256=memory.content_sha256,
            facts=facts_of(memory, draft.scope.as_dict(), draft.tags),
            created_at=now,
        )
        rows = NewRows(
            values_of(Memory, [memory])[0],
            values_of(MemoryVersion, [version])[0],
            values_of(SearchDocument, [documents.build_document(memory, read=read, key=0)])[0],
            read.terms,
        )
        return Prepared(
            draft,
            memory.public_id,
            str(memory.state),
            trust,
            flags,
            redactions,
            recalled,
            key,
            memory.content_sha256,
            rows,
            self.book,
            memory,
        )

    def _new_memory(self, draft: MemoryDraft, trust: str, flags: tuple[str, ...], key: str, now: datetime) -> Memory:
        created_at = draft.created_at or now
        memory: Memory = new_instance(
            Memory,
            {},
            public_id=draft.public_id or ids.new_id("mem"),
            event_id=draft.event or "",
            subject=draft.subject,
            content=draft.content,
            path=draft.path,
            kind=draft.kind,
            importance=draft.importance,
            pinned=draft.pinned,
            flags=list(flags),
            state=draft.state,
            # Of an archived one, the time until it is forgotten starts with the import.
            state_since=now if draft.state in (MemoryState.ACTIVE, MemoryState.ARCHIVED) else created_at,
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
        redraw(memory, draft.tags, self.book, now)
        identify(memory, key)
        return memory


def _trust(draft: MemoryDraft, *, suspicious: bool) -> str:
    trust = draft.trust or (Trust.QUARANTINED if suspicious else Trust.TRUSTED)
    return str(Trust.QUARANTINED if suspicious and trust == Trust.UNREVIEWED else trust)
