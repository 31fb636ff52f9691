"""What misses cost, by cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import Count, Sum

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.models import Diagnosis
from memoryhub.prompt_cache.models.requests import MISS_CAUSES
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
    if connection.vendor == "sqlite":
        rows = _sum_in_order(workspace, span)
    else:
        misses = Diagnosis.objects.of(workspace).reported().between(span.start, span.end)
        sums = {"misses": Count("*"), "tokens": Sum("missed_tokens"), "pico": Sum("missed_pico")}
        rows = list(misses.values_list("cause").annotate(**sums))
    found = [CauseSum(cause, misses, tokens or 0, pico or 0) for cause, misses, tokens, pico in rows]
    return sorted(found, key=lambda one: (-one.missed_pico, -one.missed_tokens, one.cause))


# The causes that a workspace has, each by one seek behind the one before.
_CAUSES = f"""
WITH RECURSIVE causes(cause) AS (
    SELECT MIN(cause) FROM prompt_cache_diagnosis INDEXED BY {MISS_CAUSES} WHERE workspace_id = %s AND reported
    UNION ALL
    SELECT (SELECT MIN(d.cause) FROM prompt_cache_diagnosis d INDEXED BY {MISS_CAUSES}
            WHERE d.workspace_id = %s AND d.reported AND d.cause > causes.cause)
    FROM causes WHERE causes.cause IS NOT NULL
)
SELECT cause FROM causes WHERE cause IS NOT NULL
"""  # noqa: S608 - our own name


def _sum_in_order(workspace: Workspace, span: Span) -> list[tuple[Any, ...]]:
    """The sums by cause, from an index that holds the causes one behind the other.

    SQLite would take the index by time and sort all it finds, which takes twice as long; so it is told which one to take.
    """
    with connection.cursor() as cursor:
        cursor.execute(_CAUSES, [workspace.pk, workspace.pk])
        causes = [cause for (cause,) in cursor.fetchall()]
        if not causes:
            return []
        cursor.execute(
            "SELECT cause, COUNT(*), SUM(missed_tokens), SUM(missed_pico) "  # noqa: S608 - our own name, bound values
            f"FROM prompt_cache_diagnosis INDEXED BY {MISS_CAUSES} "
            f"WHERE workspace_id = %s AND reported AND cause IN ({', '.join(['%s'] * len(causes))}) "
            "AND occurred_at >= %s AND occurred_at < %s GROUP BY cause",
            [workspace.pk, *causes, *map(connection.ops.adapt_datetimefield_value, (span.start, span.end))],
        )
        return cursor.fetchall()


def count_misses_after(workspace: Workspace, since: datetime, *, cap: int) -> int:
    """How many reported misses came since a moment, counted up to the cap."""
    rows = Diagnosis.objects.of(workspace).reported().filter(occurred_at__gte=since)
    return rows.order_by()[: cap + 1].count()
