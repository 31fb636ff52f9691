"""What misses cost, by cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Count, Sum

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.models import Diagnosis
from memoryhub.prompt_cache.queries.sums import Span
from memoryhub.workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class CauseSum:
    """The misses of one cause: how many, the tokens that were not read, and what that cost where a price is known."""

    cause: str
    count: int
    missed_tokens: int
    missed_pico: int

    @property
    def missed_usd(self) -> Decimal:
        return money.usd(self.missed_pico)


def sum_misses_by_cause(workspace: Workspace, span: Span) -> list[CauseSum]:
    """Reported misses of these days by cause, the dearest first."""
    rows = (
        Diagnosis.objects.of(workspace)
        .reported()
        .between(span.start, span.end)
        .values_list("cause")
        .annotate(misses=Count("*"), tokens=Sum("missed_tokens"), pico=Sum("missed_pico"))
    )
    found = [CauseSum(cause, misses, tokens or 0, pico or 0) for cause, misses, tokens, pico in rows]
    return sorted(found, key=lambda one: (-one.missed_pico, -one.missed_tokens, one.cause))


def count_misses_after(workspace: Workspace, since: datetime, *, cap: int) -> int:
    """How many reported misses came since a moment, counted up to the cap."""
    rows = Diagnosis.objects.of(workspace).reported().filter(occurred_at__gte=since)
    return rows.order_by()[: cap + 1].count()
