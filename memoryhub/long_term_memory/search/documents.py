"""The search document of a memory: its terms counted, its ranking facts packed, and its place in the term index."""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from itertools import repeat

from memoryhub.long_term_memory.domain import text
from memoryhub.long_term_memory.models import MEMORY_MASK, SCOPE_SHIFT, Kind, Memory, MemoryState, SearchDocument, Trust
from memoryhub.long_term_memory.rows import light_row

STATE_CODES = {state: code for code, state in enumerate(MemoryState.values)}
TRUST_CODES = {trust: code for code, trust in enumerate(Trust.values)}
KIND_CODES = {kind: code for code, kind in enumerate(Kind.values)}
STATE_NAMES, TRUST_NAMES, KIND_NAMES = (list(codes) for codes in (STATE_CODES, TRUST_CODES, KIND_CODES))

# Tenths, since counts are bytes: how much a word in a neighbour or in the date counts beside one in the text.
DATE_TENTHS = 5
BEFORE_TENTHS = (5, 3)  # the event before, the one before that
AFTER_TENTHS = (3, 2)
_WORKSPACE_TOKEN = 1 << 33
_SCOPE_TOKEN = 2 << 33

FACTS = (
    "session_id", "state", "trust", "kind", "created", "importance", "daily_loss", "floor", "idle_since",
    "archives_at", "expires_at", "valid_from", "valid_until", "superseded_at", "access_count", "rating",
)  # fmt: skip


def document_key(scope_id: int, memory_id: int) -> int:
    return scope_id << SCOPE_SHIFT | memory_id


def memory_id_of(key: int) -> int:
    return key & MEMORY_MASK


def seconds(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def fill_facts(document: SearchDocument, memory: Memory) -> SearchDocument:
    """Copy what ranking and filters read; the text's terms stay as they are."""
    document.session_id = memory.session_id
    document.state = STATE_CODES[memory.state]
    document.trust = TRUST_CODES[memory.trust]
    document.kind = KIND_CODES[memory.kind]
    document.created = memory.created_at.timestamp()
    document.importance = memory.importance
    document.daily_loss = memory.daily_loss
    document.floor = memory.floor
    document.idle_since = memory.idle_since.timestamp()
    document.archives_at = seconds(memory.archives_at)
    document.expires_at = seconds(memory.expires_at)
    document.valid_from = seconds(memory.valid_from)
    document.valid_until = seconds(memory.valid_until)
    document.superseded_at = seconds(memory.superseded_at)
    document.access_count = memory.access_count
    document.rating = max(-1000, min(1000, memory.helpful_count - memory.harmful_count))
    return document


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What a document holds of a text, its subject, its day and its neighbours: all that needs no row and no scope."""

    terms: bytes
    counts: bytes
    word_count: int
    token_count: float
    is_question: bool
    has_context: bool


def read_text(
    content: str,
    subject: str,
    day: date,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    words: Sequence[str] | None = None,
) -> DocumentText:
    """Count the terms of a text; neighbours of its source event are its context.

    `words` are those of the content, where they are known already.
    """
    own_words = text.words(content) if words is None else words
    own = text.count_terms(own_words)
    about = text.term_counts(subject) if subject else Counter[int]()
    dates, length = _date_terms(day)
    around = dict(dates)
    length += sum(own.values()) + sum(about.values())
    for texts, weights in ((before, BEFORE_TENTHS), (after, AFTER_TENTHS)):
        for neighbour, tenths in zip(texts, weights, strict=False):
            counts = text.term_counts(neighbour)
            length += counts.total()
            for term, count in counts.items():
                around[term] = around.get(term, 0) + count * tenths
    every = list(dict.fromkeys((*own, *about, *around)))
    return DocumentText(
        terms=array("I", every).tobytes(),
        counts=_packed(every, own, about, around),
        word_count=len(own_words),
        token_count=length,
        is_question=content.rstrip().endswith(("?", "？")),
        has_context=bool(before or after),
    )


def build_document(
    memory: Memory, vector: bytes | None = None, read: DocumentText | None = None, key: int | None = None
) -> SearchDocument:
    """The document of a memory. `read` is what was read of its text before; `key` stands for that of one without an id yet."""
    read = read or read_text(memory.content, memory.subject, memory.created_at.date())
    document: SearchDocument = light_row(
        SearchDocument,
        key=memory.document_key if key is None else key,
        workspace_id=memory.workspace_id,
        word_count=read.word_count,
        token_count=read.token_count,
        is_question=read.is_question,
        has_context=read.has_context,
        terms=read.terms,
        counts=read.counts,
        vector=vector,
    )
    return fill_facts(document, memory)


def _packed(terms: Sequence[int], *columns: Mapping[int, int]) -> bytes:
    """The counts of each term beside each other, as bytes; what is larger than a byte counts as much as one holds."""
    packed = bytearray(len(terms) * len(columns))
    for place, column in enumerate(columns):
        if column:
            counts = map(column.get, terms, repeat(0))
            try:
                packed[place :: len(columns)] = bytes(counts)
            except ValueError:
                packed[place :: len(columns)] = bytes([min(255, column.get(term, 0)) for term in terms])
    return bytes(packed)


@lru_cache(maxsize=2_048)
def _date_terms(day: date) -> tuple[dict[int, int], int]:
    """The terms of a day with their weight in tenths, and how many they are."""
    counts = text.term_counts(text.date_words(day))
    return {term: count * DATE_TENTHS for term, count in counts.items()}, counts.total()


def index_tokens(document: SearchDocument) -> list[int]:
    """What the term index lists a document under: its terms, its workspace and its scope."""
    return tokens_of(document.key, document.workspace_id, document.terms)


def tokens_of(key: int, workspace_id: int, packed_terms: bytes | memoryview) -> list[int]:
    """The same of a document's values."""
    terms = array("I")
    terms.frombytes(packed_terms)
    return [workspace_token(workspace_id), scope_token(key >> SCOPE_SHIFT), *terms]


def workspace_token(workspace_id: int) -> int:
    return _WORKSPACE_TOKEN | workspace_id


def scope_token(scope_id: int) -> int:
    return _SCOPE_TOKEN | scope_id


def embedding_text(memory: Memory) -> str:
    """What the embedder reads of a memory."""
    return f"{memory.subject}: {memory.content}" if memory.subject else memory.content


def keys_of(memories: Iterable[Memory]) -> list[int]:
    return [document_key(memory.scope_id, memory.pk) for memory in memories]
