"""The room's rows: memories with their versions, what search reads of them, and what keeps them in order."""

from memoryhub.long_term_memory.models.care import (
    DecayRules,
    ReviewItem,
    ReviewKind,
    ReviewState,
)
from memoryhub.long_term_memory.models.memories import (
    MEMORY_MASK,
    SCOPE_SHIFT,
    Kind,
    Memory,
    MemoryOrigin,
    MemoryQuerySet,
    MemoryState,
    MemoryStore,
    MemoryTag,
    MemoryVersion,
    Operation,
    Scope,
    Tag,
    Trust,
)
from memoryhub.long_term_memory.models.search import (
    CarriedMemory,
    EmbeddingModel,
    MemoryRating,
    RecalledMemory,
    RecallReceipt,
    SearchDocument,
)

__all__ = [
    "MEMORY_MASK",
    "SCOPE_SHIFT",
    "CarriedMemory",
    "DecayRules",
    "EmbeddingModel",
    "Kind",
    "Memory",
    "MemoryOrigin",
    "MemoryQuerySet",
    "MemoryRating",
    "MemoryState",
    "MemoryStore",
    "MemoryTag",
    "MemoryVersion",
    "Operation",
    "RecallReceipt",
    "RecalledMemory",
    "ReviewItem",
    "ReviewKind",
    "ReviewState",
    "Scope",
    "SearchDocument",
    "Tag",
    "Trust",
]
