"""The decay policy in force, and what a memory's curve looks like under it."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from memoryhub.common.plain_query import PlainQuery
from memoryhub.long_term_memory.domain.decay import Curve, DecayPolicy, MemoryFacts, PolicyBook, draw_curve
from memoryhub.long_term_memory.models import Memory, MemoryTag, RecalledMemory
from memoryhub.workspaces.models import Workspace

CURVE_POINTS = 61


def get_policy_book(workspace: Workspace) -> PolicyBook:
    """The workspace's decay policy with its exceptions; the defaults where none was saved."""
    rules = _RULES.fetch([workspace.pk])
    return PolicyBook() if rules is None else read_policy_book(*map(_as_object, rules))


_RULES = PlainQuery("SELECT base, by_kind, by_tag FROM long_term_memory_decayrules WHERE workspace_id = %s")


def _as_object(stored: Any) -> dict[str, Any]:
    """A JSON column as a plain cursor gives it: SQLite's as text."""
    found: dict[str, Any] = json.loads(stored) if isinstance(stored, str) else stored
    return found


def read_policy_book(
    base: dict[str, Any], by_kind: dict[str, dict[str, Any]], by_tag: dict[str, dict[str, Any]]
) -> PolicyBook:
    """A book from its stored form."""
    return PolicyBook(DecayPolicy(**_typed(base)), _typed_values(by_kind), _typed_values(by_tag))


def policy_as_dict(policy: DecayPolicy) -> dict[str, Any]:
    """A policy as plain JSON values."""
    return {**asdict(policy), "protected_tags": sorted(policy.protected_tags)}


def _typed(fields: dict[str, Any]) -> dict[str, Any]:
    if "protected_tags" in fields:
        return {**fields, "protected_tags": frozenset(fields["protected_tags"])}
    return dict(fields)


def _typed_values(book: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: _typed(fields) for name, fields in book.items()}


def idle_since(memory: Memory) -> datetime:
    """From when a memory counts as unused."""
    used_at = memory.last_accessed_at or memory.created_at
    return max(used_at, memory.decay_anchor_at) if memory.decay_anchor_at else used_at


def facts_of_curve(memory: Memory, tags: frozenset[str]) -> MemoryFacts:
    return MemoryFacts(
        importance=memory.importance,
        idle_since=idle_since(memory),
        access_count=memory.access_count,
        pinned=memory.pinned,
        kind=memory.kind,
        tags=tags,
        imported_at=memory.imported_at,
    )


@dataclass(frozen=True, slots=True)
class CurvePlot:
    """A memory's curve as data for a chart: past and future strength, accesses, and what will happen when."""

    points: list[tuple[datetime, float]]
    accesses: list[datetime]
    strength: float
    fades_at: datetime | None
    archives_at: datetime | None
    fade_threshold: float
    archive_threshold: float
    protected: bool


def plot_curve(*, memory: Memory, now: datetime, importance: float | None = None, days_ahead: int = 365) -> CurvePlot:
    """The curve of one memory, with another importance on request (a slider shows what it would do)."""
    tags = frozenset(MemoryTag.objects.filter(memory=memory).values_list("tag__name", flat=True))
    policy = get_policy_book(memory.workspace).policy_for(memory.kind, tags)
    facts = facts_of_curve(memory, tags)
    if importance is not None:
        facts = MemoryFacts(**{**_shallow(facts), "importance": max(0.0, min(1.0, importance))})
    curve = draw_curve(facts, policy)
    recalled_at = (
        RecalledMemory.objects.filter(memory=memory).order_by("-id").values_list("receipt__created_at", flat=True)
    )
    return CurvePlot(
        points=_points(curve, now, days_ahead),
        accesses=sorted(recalled_at[:100]),
        strength=curve.strength_at(now),
        fades_at=curve.fades_at,
        archives_at=curve.archives_at,
        fade_threshold=policy.fade_threshold,
        archive_threshold=policy.archive_threshold,
        protected=curve.daily_loss == 0,
    )


def _shallow(facts: MemoryFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in facts.__dataclass_fields__}


def _points(curve: Curve, now: datetime, days_ahead: int) -> list[tuple[datetime, float]]:
    """Evenly spaced from the start of the curve (at most a year back) to the horizon, with now among them."""
    start = max(min(curve.idle_since, now), now - timedelta(days=365))
    end = now + timedelta(days=days_ahead)
    if curve.archives_at is not None and now < curve.archives_at < end:
        end = min(end, now + (curve.archives_at - now) * 1.25)
    step = (end - start) / (CURVE_POINTS - 1)
    moments = sorted({now, *(start + step * index for index in range(CURVE_POINTS))})
    return [(at, curve.strength_at(at)) for at in moments]
