"""Keeping a memory together with its neighbours: what was said just before and after it in its session.

A question often shares words with the sentence before the answer, so the words around an event count when its memory is
looked for. Where the events were never sent here, neighbouring memories of the session do the same at search time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from memoryhub.long_term_memory.services import MemoryDraft, Remembered, Writer, remember
from memoryhub.session_cache.models import SessionEvent
from memoryhub.session_cache.queries.blobs import contents_of
from memoryhub.session_cache.queries.tree import find_events, find_tree
from memoryhub.workspaces.models import Session

REACH = 2  # events on each side
MAX_NEIGHBOUR_CHARS = 2_000
SPOKEN_KINDS = frozenset({"message"})

Place = tuple[int, int]  # branch and sequence


def remember_with_neighbours(
    *, writer: Writer, drafts: Sequence[MemoryDraft], file_door: bool = False
) -> list[Remembered]:
    """Store memories as `remember` does; those that name an event bring its neighbours' words along."""
    return remember(writer=writer, drafts=_with_neighbours(writer, drafts), file_door=file_door)


def _with_neighbours(writer: Writer, drafts: Sequence[MemoryDraft]) -> list[MemoryDraft]:
    wanted: dict[str, set[str]] = {}
    for draft in drafts:
        if draft.session and draft.event and not (draft.context_before or draft.context_after):
            wanted.setdefault(draft.session, set()).add(draft.event)
    if not wanted:
        return list(drafts)
    sessions = Session.objects.filter(workspace=writer.workspace, sid__in=wanted)
    around = {session.sid: _neighbours(session, wanted[session.sid]) for session in sessions}
    filled = []
    for draft in drafts:
        before, after = around.get(draft.session or "", {}).get(draft.event or "", ((), ()))
        filled.append(replace(draft, context_before=before, context_after=after) if before or after else draft)
    return filled


def _neighbours(session: Session, event_ids: Iterable[str]) -> dict[str, tuple[list[str], list[str]]]:
    """For each event the texts before and after it, the nearest first."""
    events = find_events(session, find_tree(session), event_ids)
    texts = _texts_around(events.values())
    around = {}
    for event_id, event in events.items():
        before = [texts.get((event.branch_id, event.seq - step), "") for step in range(1, REACH + 1)]
        after = [texts.get((event.branch_id, event.seq + step), "") for step in range(1, REACH + 1)]
        around[event_id] = (before if any(before) else [], after if any(after) else [])
    return around


def _texts_around(events: Iterable[SessionEvent]) -> dict[Place, str]:
    """The spoken texts within reach of these events, by place; two queries per branch."""
    places: dict[int, set[int]] = {}
    for event in events:
        reach = range(max(0, event.seq - REACH), event.seq + REACH + 1)
        places.setdefault(event.branch_id, set()).update(reach)
    texts: dict[Place, str] = {}
    for branch_id, sequences in places.items():
        rows = SessionEvent.objects.filter(
            branch_id=branch_id, seq__gte=min(sequences), seq__lte=max(sequences), kind__in=SPOKEN_KINDS
        ).values_list("seq", "blob_id")
        near = [(seq, blob_id) for seq, blob_id in rows if seq in sequences]
        contents = contents_of(blob_id for _, blob_id in near)
        texts |= {(branch_id, seq): spoken_text(contents.get(blob_id)) for seq, blob_id in near}
    return texts


def spoken_text(content: Any) -> str:
    """The words of a message: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content[:MAX_NEIGHBOUR_CHARS]
    if isinstance(content, dict):
        return spoken_text(content.get("content") if "content" in content else content.get("text"))
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
        return "\n".join(text for text in texts if isinstance(text, str))[:MAX_NEIGHBOUR_CHARS]
    return ""
