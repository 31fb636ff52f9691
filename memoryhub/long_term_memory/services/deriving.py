"""What follows from the rest of a memory: its curve under the decay policy, its text's keys, what a version keeps."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from memoryhub.long_term_memory.domain import duplicates
from memoryhub.long_term_memory.domain.decay import Curve, DecayPolicy, PolicyBook, draw_curve
from memoryhub.long_term_memory.domain.forms import TIMES, pack_time
from memoryhub.long_term_memory.domain.lifecycle import Standing, forget_moment, judge
from memoryhub.long_term_memory.models import Memory, MemoryState
from memoryhub.long_term_memory.queries.policy import facts_of_curve


def facts_of(memory: Memory, scope: dict[str, str | None], tags: Iterable[str]) -> dict[str, Any]:
    """A memory's form without its content: what a version remembers of it."""
    return {
        "scope": scope,
        "subject": memory.subject,
        "kind": memory.kind,
        "importance": memory.importance,
        "pinned": memory.pinned,
        "tags": sorted(tags),
        "path": memory.path,
        # Fading is derived from the curve; a version only knows what somebody did.
        "state": MemoryState.ACTIVE if memory.state == MemoryState.FADING else memory.state,
        "trust": memory.trust,
        "superseded_by": memory.superseded_by_id,
        **{name: pack_time(getattr(memory, name)) for name in TIMES},
    }


def redraw(memory: Memory, tags: Iterable[str], book: PolicyBook, now: datetime) -> None:
    """Draw the curve anew and evaluate it; only active and fading follow it at once."""
    names = frozenset(tags)
    policy = book.policy_for(memory.kind, names)
    curve = draw_curve(facts_of_curve(memory, names), policy)
    if memory.state in (MemoryState.ACTIVE, MemoryState.FADING):
        verdict = judge(Standing(memory.state, memory.state_since), curve, policy, now)  # type: ignore[arg-type]
        if verdict.state in ("active", "fading") and verdict.state != memory.state:
            memory.state, memory.state_since, memory.state_by_curve = verdict.state, verdict.since, True
    store_curve(memory, curve, policy, now)


def store_curve(memory: Memory, curve: Curve, policy: DecayPolicy, now: datetime) -> None:
    """Put a curve into the row: its parameters, today's strength, and the moments that still lie ahead."""
    memory.idle_since = curve.idle_since
    memory.daily_loss, memory.floor = curve.daily_loss, curve.floor
    memory.strength, memory.strength_at = curve.strength_at(now), now
    ahead = memory.state in (MemoryState.ACTIVE, MemoryState.FADING)
    memory.fades_at = curve.fades_at if memory.state == MemoryState.ACTIVE else None
    memory.archives_at = curve.archives_at if ahead else None
    memory.forgets_at = None
    archived_at = curve.archives_at if ahead else memory.state_since
    if memory.state != MemoryState.FORGOTTEN and archived_at is not None:
        memory.forgets_at = forget_moment(Standing("archived", archived_at), policy, curve)


def identify(memory: Memory, key: str | None = None) -> None:
    """Set what is derived from the text: its hash, and the key under which its like may exist once (computed anew, or given)."""
    memory.content_sha256 = duplicates.content_sha256(memory.content)
    alone = (
        memory.path is None
        and memory.state != MemoryState.FORGOTTEN
        and memory.superseded_by_id is None
        and memory.superseded_at is None
    )
    if alone and key is None:
        key = duplicates.dedupe_key(memory.content, memory.valid_from, memory.valid_until, memory.subject)
    memory.dedupe_key = key if alone else None
