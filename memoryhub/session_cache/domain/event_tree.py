"""The tree of a session's events: where an event hangs, which events a node sees, and what its position is worth.

Events lie in branches, numbered from 1. A branch grows from a node of another branch; its `path` names the stretch that
it inherits from each branch above it, the root first. So the past of any node is a few ranges of numbers, not a walk
from parent to parent:

    branch 1:  1 2 3 4 5 6        path of branch 2: [[1, 4]]
                     \\ branch 2: 1 2 3            past of (2, 2): 1.1-1.4, 2.1-2.2

Only conversation events are parents. A note (progress, a retry) hangs at the node where it was written and is nobody's
past.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

CONVERSATION_KINDS = ("message", "tool_use", "tool_result", "compaction")
NOTE = "note"
KINDS = (*CONVERSATION_KINDS, NOTE)
EMPTY_PREFIX = b"\0" * 32  # the prefix hash above a first event

Path = tuple[tuple[int, int], ...]  # ((branch id, up to this number), ...), the root first


class BrokenBatch(ValueError):
    """A batch whose parents can't be put in order; `event_id` names the first one that fails."""

    def __init__(self, message: str, event_id: str) -> None:
        super().__init__(message)
        self.event_id = event_id


@dataclass(frozen=True, slots=True)
class Node:
    """A place in the tree."""

    branch_id: int
    seq: int
    depth: int  # how many conversation events lie above it
    prefix_hash: bytes
    path: Path = ()  # of its branch, without the branch itself

    @property
    def full_path(self) -> Path:
        """The stretches that make up the past of this node, itself included."""
        return (*self.path, (self.branch_id, self.seq))


def sees(path: Path, branch_id: int, seq: int) -> bool:
    """Tell whether the node whose full path this is has the event in its past."""
    return any(branch == branch_id and seq <= upto for branch, upto in path)


def common_past(a: Path, b: Path) -> Path:
    """Return the stretches that two nodes share."""
    shared: list[tuple[int, int]] = []
    for (branch_a, upto_a), (branch_b, upto_b) in zip(a, b, strict=False):
        if branch_a != branch_b:
            break
        shared.append((branch_a, min(upto_a, upto_b)))
        if upto_a != upto_b:
            break
    return tuple(shared)


def abandoned(old: Path, new: Path) -> list[tuple[int, int, int]]:
    """Return (branch, first, last) of what the old node sees and the new one does not."""
    kept = dict(common_past(old, new))
    return [(branch, kept.get(branch, 0) + 1, upto) for branch, upto in old if upto > kept.get(branch, 0)]


def chain_hash(parent: bytes, *, kind: str, role: str, tool_call_id: str, content_sha256: bytes) -> bytes:
    """Return the hash that stands for the whole sequence up to and including this event."""
    digest = hashlib.sha256(parent)
    for part in (kind, role, tool_call_id):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "big"))
        digest.update(data)
    digest.update(content_sha256)
    return digest.digest()


@dataclass(frozen=True, slots=True)
class Link:
    """One event of a batch with the parent that it names: an id, or None for "after the one before me"."""

    event_id: str
    parent_id: str | None
    is_note: bool = False


def order_batch(links: Sequence[Link], known: Iterable[str]) -> list[Link]:
    """Return the links so that every parent comes first, or raise BrokenBatch.

    A link without a parent follows the conversation event before it in the caller's list (None: the session's head).
    `known` are the parents that exist already. A cycle, a parent that is nowhere, and a note as a parent are refused.
    """
    resolved: dict[str, Link] = {}
    previous: str | None = None
    for link in links:
        if link.event_id in resolved:
            raise BrokenBatch(f"the id {link.event_id} stands twice in this batch", link.event_id)
        resolved[link.event_id] = link if link.parent_id is not None else replace(link, parent_id=previous)
        previous = previous if link.is_note else link.event_id
    ordered: list[Link] = []
    done = set(known)
    for start in resolved.values():
        _place(start, resolved, done, ordered)
    return ordered


def _place(start: Link, resolved: Mapping[str, Link], done: set[str], ordered: list[Link]) -> None:
    """Put a link behind its parents; without recursion, for a chain may be as long as the batch."""
    way, on_way = [start], {start.event_id}
    while way:
        link = way[-1]
        parent_id = link.parent_id
        parent = resolved.get(parent_id or "")
        if parent is not None and parent.is_note:
            raise BrokenBatch(f"the parent {parent_id} is a note, and only conversation events are", link.event_id)
        if link.event_id not in done and parent_id is not None and parent_id not in done:
            if parent is None:
                raise BrokenBatch(f"the parent {parent_id} is not in this session", link.event_id)
            if parent_id in on_way:
                raise BrokenBatch(f"the parents of {link.event_id} form a circle", link.event_id)
            way.append(parent)
            on_way.add(parent_id)
            continue
        way.pop()
        if link.event_id not in done:
            done.add(link.event_id)
            ordered.append(link)
