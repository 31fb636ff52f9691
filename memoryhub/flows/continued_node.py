"""Where a request stands in its session's tree: the event that it continues, and the first one that it tells otherwise.

The ledger keeps hashes of a request's blocks, the tree keeps the events; both are brought to the same hashes and compared
from the beginning. Nothing of the request's text is needed, so this works as long as its fingerprint is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memoryhub.prompt_cache.domain.blocks import canonical_digest
from memoryhub.prompt_cache.domain.fingerprint import unpack
from memoryhub.prompt_cache.domain.request_body import BadRequestBody, read_prompt
from memoryhub.prompt_cache.models import RequestFingerprint, UsageRecord
from memoryhub.session_cache.domain.context_window import WindowEvent, to_anthropic
from memoryhub.session_cache.queries.tree import find_tips
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.workspaces.models import Session

MOST_TIPS = 8  # ways that are looked along: the head's, and those of the newest branches
MOST_EVENTS = 5_000  # of a window; where it is longer, its beginning is missing and nothing can be compared


@dataclass(frozen=True, slots=True)
class ContinuedNode:
    """A request's place: it tells everything up to `event_id` as the tree has it.

    `changed_event_id` is the next event of that way where the request says something else instead; empty where the request
    only goes on. `matched` of `blocks` blocks of its messages are the tree's.
    """

    event_id: str
    changed_event_id: str
    matched: int
    blocks: int


def find_continued_node(record: UsageRecord) -> ContinuedNode | None:
    """Return the place of a recorded request; None where its body was never seen or its session holds nothing of it."""
    kept = RequestFingerprint.objects.filter(record=record).first()
    session = Session.objects.filter(workspace=record.workspace_id, sid=record.session).first()
    if kept is None or session is None:
        return None
    sent = [block.canonical or b"" for block in unpack(bytes(kept.packed)).blocks if block.section == "messages"]
    windows = (get_window(session, at=tip, max_events=MOST_EVENTS) for tip in find_tips(session, limit=MOST_TIPS))
    places = [place for window in windows if window.complete and (place := _place_on(sent, window.events)) is not None]
    return max(places, key=lambda place: (place.matched, not place.changed_event_id), default=None)


def _place_on(sent: Sequence[bytes], events: Sequence[WindowEvent]) -> ContinuedNode | None:
    """Walk along one window as far as the request tells the same."""
    matched, last, changed = 0, "", ""
    for event in events:
        told = _digests_of(event)
        here = sent[matched : matched + len(told)]
        if here != told:
            changed = event.id if here else ""
            break
        matched, last = matched + len(told), event.id
    return ContinuedNode(last, changed, matched, len(sent)) if matched else None


def _digests_of(event: WindowEvent) -> list[bytes]:
    """The hashes of the blocks that an event puts into a request's messages; what no request can hold matches nothing."""
    try:
        blocks = read_prompt({"messages": to_anthropic([event])["messages"]}).blocks
    except BadRequestBody:
        return [b""]
    return [canonical_digest(block) for block in blocks]
