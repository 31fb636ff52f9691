"""What one memory's page shows beside the memory itself: its history, its relatives, what its curve is made of."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from memoryhub.long_term_memory.domain.decay import DecayPolicy, MemoryFacts
from memoryhub.long_term_memory.models import Memory, MemoryVersion, RecalledMemory, ReviewItem, ReviewKind
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.long_term_memory.queries.policy import facts_of_curve, get_policy_book

MAX_RELATIVES = 20
MAX_ACCESSES = 60  # of the newest, as many as a chart can tell apart


def find_version(memory: Memory, number: int) -> MemoryVersion | None:
    """One version of a memory, or None where there is none of that number."""
    return MemoryVersion.objects.filter(memory=memory, number=number).first()


def list_versions_down_from(memory: Memory, number: int, limit: int) -> list[MemoryVersion]:
    """Versions from a number downwards, the newest first; one more than the limit, to compare the last one with."""
    rows = MemoryVersion.objects.filter(memory=memory, number__lte=number).select_related("change_set")
    return list(rows.order_by("-number")[: limit + 1])


def list_pairs(memory: Memory) -> list[ReviewItem]:
    """The near duplicates and contradictions that were ever seen between this memory and others, the newest first."""
    rows = ReviewItem.objects.filter(
        Q(memory=memory, other__isnull=False) | Q(other=memory, memory__isnull=False),
        workspace=memory.workspace,
        kind__in=[ReviewKind.DUPLICATE, ReviewKind.CONTRADICTION],
    )
    return list(rows.select_related("memory__scope", "other__scope").order_by("-id")[:MAX_RELATIVES])


@dataclass(frozen=True, slots=True)
class CurveParts:
    """What a memory's curve is drawn from."""

    facts: MemoryFacts
    policy: DecayPolicy
    accesses: list[datetime]


def get_curve_parts(memory: Memory) -> CurveParts:
    """The facts, the policy in force for it, and when it was recalled."""
    tags = frozenset(tag_names(memory))
    recalled_at = (
        RecalledMemory.objects.filter(memory=memory).order_by("-id").values_list("receipt__created_at", flat=True)
    )
    return CurveParts(
        facts=facts_of_curve(memory, tags),
        policy=get_policy_book(memory.workspace).policy_for(memory.kind, tags),
        accesses=sorted(recalled_at[:MAX_ACCESSES]),
    )
