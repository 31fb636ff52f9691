"""Counting hits and misses without writing on the way: notes in memory, stored together every few seconds.

A process that dies loses at most FLUSH_EVERY_SECONDS of counts, never a result. Whoever reads figures in this process
flushes first, so they are up to date there.
"""

import atexit
import logging
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings
from django.db import connection
from django.db.models import F

from memoryhub.common import clock
from memoryhub.session_cache.domain.eviction import DEFAULT_COST_MS, POLICIES, Facts, moving_average
from memoryhub.session_cache.models import ToolPolicy, ToolResult, ToolUsage
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Session

logger = logging.getLogger(__name__)
FLUSH_EVERY_SECONDS = 2.0
_COUNTED_MISSES = ("absent", "expired", "stale", "invalidated", "evicted", "uncacheable")


@dataclass(slots=True)
class _Usage:
    hits: int = 0
    misses: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    refused: int = 0
    saved_ms: float = 0.0
    lookup_ms: float = 0.0
    verified: int = 0
    verified_stale: int = 0


@dataclass(slots=True)
class _EntryHits:
    count: int = 0
    last_at: datetime | None = None


_lock = threading.Lock()
_flush_lock = threading.Lock()
_usage: dict[tuple[int, int, str], _Usage] = {}
_hits: dict[int, _EntryHits] = {}
_costs: dict[tuple[int, str], list[float]] = {}
_flusher: threading.Thread | None = None


def note_hit(
    *, workspace_id: int, session_id: int, tool: str, result_id: int, saved_ms: float, lookup_ms: float
) -> int:
    """Note a hit and return how many of this entry are noted but not stored yet."""
    with _lock:
        usage = _usage.setdefault((workspace_id, session_id, tool), _Usage())
        usage.hits += 1
        usage.saved_ms += saved_ms
        usage.lookup_ms += lookup_ms
        entry = _hits.setdefault(result_id, _EntryHits())
        entry.count += 1
        entry.last_at = clock.now()
        pending = entry.count
    _ensure_flusher()
    return pending


def note_front_hits(*, workspace_id: int, session_id: int, tool: str, count: int, saved_ms: float) -> None:
    """Note hits that a client's own cache has answered."""
    with _lock:
        usage = _usage.setdefault((workspace_id, session_id, tool), _Usage())
        usage.hits += count
        usage.saved_ms += saved_ms
    _ensure_flusher()


def note_miss(*, workspace_id: int, session_id: int, tool: str, reason: str, lookup_ms: float) -> None:
    """Note a miss with its reason."""
    with _lock:
        usage = _usage.setdefault((workspace_id, session_id, tool), _Usage())
        usage.misses[reason] += 1
        usage.lookup_ms += lookup_ms
    _ensure_flusher()


def note_refusal(*, workspace_id: int, session_id: int, tool: str) -> None:
    """Note a result that could not be stored."""
    with _lock:
        _usage.setdefault((workspace_id, session_id, tool), _Usage()).refused += 1
    _ensure_flusher()


def note_verification(*, workspace_id: int, session_id: int, tool: str, stale: bool) -> None:
    """Note that a hit was run again, and whether it had been wrong."""
    with _lock:
        usage = _usage.setdefault((workspace_id, session_id, tool), _Usage())
        usage.verified += 1
        usage.verified_stale += stale
    _ensure_flusher()


def note_cost(*, workspace_id: int, tool: str, cost_ms: float) -> None:
    """Note how long a tool took, for its moving average."""
    with _lock:
        _costs.setdefault((workspace_id, tool), []).append(cost_ms)
    _ensure_flusher()


def flush() -> None:
    """Store what has been noted. Safe to call at any time and from any thread."""
    with _flush_lock:
        with _lock:
            usage, hits, costs = dict(_usage), dict(_hits), dict(_costs)
            _usage.clear()
            _hits.clear()
            _costs.clear()
        if not (usage or hits or costs):
            return
        try:
            with write_transaction():
                _store_usage(usage)
                _store_hits(hits)
                _store_costs(costs)
        except Exception:
            _put_back(usage, hits, costs)
            raise


def forget_all() -> None:
    """Drop what has been noted and not stored; for tests."""
    with _lock:
        _usage.clear()
        _hits.clear()
        _costs.clear()


def _store_usage(usage: dict[tuple[int, int, str], _Usage]) -> None:
    living = set(Session.objects.filter(pk__in={session for _, session, _ in usage}).values_list("pk", flat=True))
    for (workspace_id, session_id, tool), noted in sorted(usage.items(), key=lambda item: item[0]):
        if session_id not in living:
            continue
        changes = {
            "hits": F("hits") + noted.hits,
            "misses": F("misses") + sum(noted.misses.values()),
            "refused": F("refused") + noted.refused,
            "saved_ms": F("saved_ms") + noted.saved_ms,
            "lookup_ms": F("lookup_ms") + noted.lookup_ms,
            "verified": F("verified") + noted.verified,
            "verified_stale": F("verified_stale") + noted.verified_stale,
            **{f"missed_{reason}": F(f"missed_{reason}") + noted.misses.get(reason, 0) for reason in _COUNTED_MISSES},
        }
        ToolUsage.objects.bulk_create(
            [ToolUsage(workspace_id=workspace_id, session_id=session_id, tool=tool)], ignore_conflicts=True
        )
        ToolUsage.objects.filter(session_id=session_id, tool=tool).update(**changes)


def _store_hits(hits: dict[int, _EntryHits]) -> None:
    if not hits:
        return
    policy = POLICIES[settings.TOOL_CACHE_EVICTION]
    entries = ToolResult.objects.filter(pk__in=list(hits)).select_related("space").defer("value")
    updated = []
    for entry in entries:
        noted = hits[entry.pk]
        entry.hit_count += noted.count
        entry.last_hit_at = noted.last_at
        used_at = (noted.last_at or clock.now()).timestamp()
        cost = entry.cost_ms if entry.cost_ms is not None else DEFAULT_COST_MS
        entry.priority = policy(Facts(entry.hit_count, cost, entry.size_bytes, used_at), entry.space.floor)
        updated.append(entry)
    ToolResult.objects.bulk_update(updated, ["hit_count", "last_hit_at", "priority"], batch_size=200)


def _store_costs(costs: dict[tuple[int, str], list[float]]) -> None:
    for (workspace_id, tool), samples in sorted(costs.items()):
        policy = ToolPolicy.objects.filter(workspace_id=workspace_id, tool=tool).first()
        if policy is None:
            continue
        average = policy.average_cost_ms
        for sample in samples[-100:]:
            average = moving_average(average, sample)
        ToolPolicy.objects.filter(pk=policy.pk).update(average_cost_ms=average)


def _put_back(
    usage: dict[tuple[int, int, str], _Usage],
    hits: dict[int, _EntryHits],
    costs: dict[tuple[int, str], list[float]],
) -> None:
    """Keep the notes of a flush that failed; newer notes of the same thing are added to them."""
    with _lock:
        for place, noted in usage.items():
            newer = _usage.get(place)
            if newer is not None:
                noted.hits += newer.hits
                noted.refused += newer.refused
                noted.saved_ms += newer.saved_ms
                noted.lookup_ms += newer.lookup_ms
                noted.verified += newer.verified
                noted.verified_stale += newer.verified_stale
                for reason, count in newer.misses.items():
                    noted.misses[reason] += count
            _usage[place] = noted
        for result_id, entry in hits.items():
            newer_hits = _hits.get(result_id)
            if newer_hits is not None:
                entry.count += newer_hits.count
                entry.last_at = newer_hits.last_at
            _hits[result_id] = entry
        for tool, samples in costs.items():
            _costs[tool] = samples + _costs.get(tool, [])


def _ensure_flusher() -> None:
    global _flusher
    if not settings.TOOL_CACHE_FLUSHER or (_flusher is not None and _flusher.is_alive()):
        return
    with _lock:
        if _flusher is None or not _flusher.is_alive():
            _flusher = threading.Thread(target=_flush_forever, name="tool-usage", daemon=True)
            _flusher.start()
            atexit.register(_flush_at_exit)


def _flush_forever() -> None:
    pause = threading.Event()
    while True:
        pause.wait(FLUSH_EVERY_SECONDS)
        try:
            flush()
        except Exception as error:
            logger.warning("tool usage could not be stored: %s", error)
        finally:
            connection.close()


def _flush_at_exit() -> None:
    try:
        flush()
    except Exception as error:
        logger.warning("tool usage was lost at the end: %s", error)
