"""Near duplicates and contradictions: found when a memory is stored, shown in the review inbox, never settled by themselves."""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from django.db import connection

from memoryhub.common import ids
from memoryhub.long_term_memory.domain import duplicates
from memoryhub.long_term_memory.domain.contradictions import contradicts
from memoryhub.long_term_memory.models import (
    SCOPE_SHIFT,
    Memory,
    MemoryState,
    ReviewItem,
    ReviewKind,
    ReviewState,
    SearchDocument,
)
from memoryhub.long_term_memory.rows import insert_rows
from memoryhub.long_term_memory.search import documents
from memoryhub.workspaces.models import Workspace

MOST_SKETCHES = 3_000  # memories of a scope whose sketches are all looked at
MAX_NEIGHBOURS = 1_000  # of a larger one: the newest
MAX_PROPOSALS = 3  # of one memory
MOST_COMPARED = 24  # of the likeliest, word by word
PREFILTER = 0.45  # share of common terms from which the texts are compared
_LIVE = (MemoryState.ACTIVE, MemoryState.FADING)
_LIVE_CODES = [documents.STATE_CODES[state] for state in _LIVE]
_DOCUMENTS, _MEMORIES = SearchDocument._meta.db_table, Memory._meta.db_table


def ask_about_quarantined(*, workspace: Workspace, memories: Sequence[Memory], now: datetime) -> None:
    """Put quarantined memories into the inbox, each once at a time."""
    if not memories:
        return
    pks = [memory.pk for memory in memories]
    waiting = set(
        ReviewItem.objects.filter(memory_id__in=pks, kind=ReviewKind.QUARANTINED, state=ReviewState.OPEN).values_list(
            "memory_id", flat=True
        )
    )
    insert_rows(
        [
            ReviewItem(
                workspace=workspace,
                public_id=ids.new_id("rev"),
                kind=ReviewKind.QUARANTINED,
                memory=memory,
                score=memory.importance,
                created_at=now,
            )
            for memory in memories
            if memory.pk not in waiting
        ]
    )


def propose_duplicates(*, workspace: Workspace, memories: Sequence[Memory], now: datetime) -> int:
    """Open a review item for each older memory of the same scope that says nearly the same; returns how many."""
    by_scope: dict[int, list[Memory]] = {}
    for memory in memories:
        by_scope.setdefault(memory.scope_id, []).append(memory)
    items = [
        item for scope_id, group in by_scope.items() for item in _propose_in_scope(workspace, scope_id, group, now)
    ]
    ReviewItem.objects.bulk_create(items, ignore_conflicts=True)
    return len(items)


def _propose_in_scope(workspace: Workspace, scope_id: int, group: list[Memory], now: datetime) -> list[ReviewItem]:
    """By the sketches in the keys of the scope's texts; of a scope that is too large for that, by the terms of the newest."""
    with connection.cursor() as cursor:  # answered by the index over both columns alone
        cursor.execute(
            f"SELECT id, dedupe_key FROM {_MEMORIES} WHERE scope_id = %s AND dedupe_key IS NOT NULL LIMIT %s",  # noqa: S608 - our own names, bound values
            [scope_id, MOST_SKETCHES + 1],
        )
        rows = cursor.fetchall()
    if len(rows) > MOST_SKETCHES:
        return _propose_among_newest(workspace, scope_id, group, now)
    pks, keys = [pk for pk, _ in rows], [key for _, key in rows]
    items = []
    for memory in group:
        if memory.dedupe_key is not None:
            near = [pks[place] for place in duplicates.rank_by_sketch(memory.dedupe_key, keys)[:MOST_COMPARED]]
            items += _compare(workspace, memory, [pk for pk in near if pk < memory.pk], now)
    return items


def _propose_among_newest(workspace: Workspace, scope_id: int, group: list[Memory], now: datetime) -> list[ReviewItem]:
    rows = _comparable(scope_id, group)
    if len(rows) < 2:
        return []
    packed = [bytes(terms) for _, terms in rows]
    terms = np.frombuffer(b"".join(packed), dtype=np.uint32)
    sizes = np.array([len(blob) // 4 for blob in packed])
    owner = np.repeat(np.arange(len(rows)), sizes)
    keys = np.array([key for key, _ in rows])
    items = []
    for memory in group:
        place = np.flatnonzero(keys == memory.document_key)
        if not place.size:
            continue
        mine = np.frombuffer(packed[place[0]], dtype=np.uint32)
        common = np.bincount(owner[np.isin(terms, mine)], minlength=len(rows))
        overlap = common / (sizes + len(mine) - common)
        near = [i for i in np.argsort(-overlap)[:MOST_COMPARED] if overlap[i] >= PREFILTER]
        older = [documents.memory_id_of(int(keys[i])) for i in near if keys[i] < memory.document_key]
        items += _compare(workspace, memory, older, now)
    return items


def _comparable(scope_id: int, group: list[Memory]) -> list[tuple[int, bytes]]:
    """(key, terms) of the scope's newest documents; of two whose numbers of terms are too far apart none is nearly the other."""
    first, last = scope_id << SCOPE_SHIFT, (scope_id + 1) << SCOPE_SHIFT
    keys = [memory.document_key for memory in group]
    holes = ", ".join(["%s"] * len(keys))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT min(length(terms)), max(length(terms)) FROM {_DOCUMENTS} WHERE key IN ({holes})",  # noqa: S608
            keys,
        )
        shortest, longest = cursor.fetchone()
        if shortest is None:
            return []
        cursor.execute(
            f"SELECT key, terms FROM {_DOCUMENTS} WHERE key >= %s AND key < %s AND state IN (%s, %s)"  # noqa: S608
            " AND superseded_at IS NULL AND length(terms) BETWEEN %s AND %s ORDER BY key DESC LIMIT %s",
            [first, last, *_LIVE_CODES, int(shortest * PREFILTER), int(longest / PREFILTER) + 1, MAX_NEIGHBOURS],
        )
        rows: list[tuple[int, bytes]] = cursor.fetchall()
    return rows


def _compare(workspace: Workspace, memory: Memory, ids_near: Sequence[int], now: datetime) -> list[ReviewItem]:
    if not ids_near:
        return []
    found = []
    others = Memory.objects.filter(pk__in=ids_near, path__isnull=True, state__in=_LIVE, superseded_at__isnull=True)
    for other in others.exclude(content=memory.content):
        if memory.superseded_by_id == other.pk or other.superseded_by_id == memory.pk:
            continue
        score = duplicates.term_overlap(memory.content, other.content)
        if score >= duplicates.NEAR_DUPLICATE:
            found.append((score, other))
    found.sort(key=lambda pair: (-pair[0], pair[1].pk))
    return [
        ReviewItem(
            workspace=workspace,
            public_id=ids.new_id("rev"),
            kind=ReviewKind.CONTRADICTION if contradicts(memory.content, other.content) else ReviewKind.DUPLICATE,
            memory=memory,
            other=other,
            score=score,
            created_at=now,
        )
        for score, other in found[:MAX_PROPOSALS]
    ]
