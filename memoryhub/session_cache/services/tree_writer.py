"""Hanging events into a session's tree. Shared by appends (strict) and imports (lenient); the caller holds the lock."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from memoryhub.common import clock
from memoryhub.common.tokens import estimate_tokens
from memoryhub.session_cache.domain.context_window import memory_tokens
from memoryhub.session_cache.domain.event_tree import EMPTY_PREFIX, NOTE, Node, chain_hash
from memoryhub.session_cache.models import Branch, SessionEvent, SessionTree
from memoryhub.session_cache.services.blobs import ensure_blobs, insert_rows
from memoryhub.session_cache.services.packs import is_due, pack_head
from memoryhub.workspaces.models import Session

_COLUMNS = (
    "session_id", "branch_id", "seq", "event_id", "parent_event_id", "kind", "role", "tokens", "memory_tokens",
    "tool_call_id", "depth", "prefix_hash", "blob_id", "occurred_at",
)  # fmt: skip


_GROW = "UPDATE session_cache_branch SET head_seq = %s, tip_seq = %s WHERE id = %s"
_STAND = (
    "UPDATE session_cache_sessiontree SET head_branch_id = %s, head_seq = %s, head_path = %s,"
    " event_count = %s, token_count = %s WHERE session_id = %s"
)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to hang. `content` is its JSON, byte for byte as it shall come back; tokens None are estimated."""

    event_id: str
    kind: str
    content: bytes
    role: str = ""
    tool_call_id: str = ""
    tokens: int | None = None
    occurred_at: datetime | None = None

    @property
    def is_note(self) -> bool:
        return self.kind == NOTE


@dataclass(slots=True)
class Placed:
    """A new event with its place, before it is written."""

    event: NewEvent
    node: Node
    parent_event_id: str
    digest: bytes


class TreeWriter:
    """Collects new events of one session and writes them together: contents, events, branches, the tree's row."""

    def __init__(self, session: Session, tree: SessionTree) -> None:
        self.session = session
        self.tree = tree
        self.placed: list[Placed] = []
        self._branches: dict[int, Branch] = {}
        self._loose: Branch | None = None  # holds the notes that hang on nothing
        self._now = clock.now()

    def know(self, branches: Iterable[Branch]) -> None:
        """Hand over branches that are loaded already."""
        for branch in branches:
            self._branches.setdefault(branch.pk, branch)

    def hang(self, event: NewEvent, parent: Node | None, parent_event_id: str) -> Node:
        """Give the event its place below the parent and return it; below None it starts a root of its own."""
        branch = self._branch_for_loose_notes() if parent is None and event.is_note else self._branch_for(parent)
        branch.head_seq += 1
        digest = hashlib.sha256(event.content).digest()
        above = parent.prefix_hash if parent else EMPTY_PREFIX
        if event.is_note:
            prefix = above
        else:
            branch.tip_seq = branch.head_seq
            prefix = chain_hash(
                above, kind=event.kind, role=event.role, tool_call_id=event.tool_call_id, content_sha256=digest
            )
        depth = parent.depth + 1 if parent else 0
        node = Node(branch.pk, branch.head_seq, depth, prefix, branch.inherited)
        self.placed.append(Placed(event, node, parent_event_id, digest))
        return node

    def _branch_for(self, parent: Node | None) -> Branch:
        if parent is None:
            return self._new_branch(None)
        branch = self._branches.get(parent.branch_id)
        if branch is None:
            branch = self._branches[parent.branch_id] = Branch.objects.get(pk=parent.branch_id)
        if branch.session_id == self.session.pk and branch.tip_seq == parent.seq:
            return branch
        return self._new_branch(parent)

    def _branch_for_loose_notes(self) -> Branch:
        self._loose = self._loose or self._new_branch(None)
        return self._loose

    def _new_branch(self, parent: Node | None) -> Branch:
        branch = Branch.objects.create(
            session=self.session,
            parent_id=parent.branch_id if parent else None,
            fork_seq=parent.seq if parent else 0,
            path=[list(stretch) for stretch in parent.full_path] if parent else [],
            created_at=self._now,
        )
        self._branches[branch.pk] = branch
        return branch

    def write(self, head: Node | None) -> None:
        """Write everything that was hung, and move the head where one is given."""
        if self.placed:
            contents = {placed.digest: placed.event.content for placed in self.placed}
            blobs = ensure_blobs(workspace=self.session.workspace, contents=contents)
            adapt = connection.ops.adapt_datetimefield_value
            insert_rows(SessionEvent, _COLUMNS, [self._row(placed, blobs, adapt) for placed in self.placed])
            grown = [self._branches[pk] for pk in {placed.node.branch_id for placed in self.placed}]
            with connection.cursor() as cursor:
                cursor.executemany(_GROW, [(branch.head_seq, branch.tip_seq, branch.pk) for branch in grown])
            for branch in grown:
                new = sum(placed.node.branch_id == branch.pk for placed in self.placed)
                if is_due(branch.head_seq - new, branch.head_seq):
                    pack_head(branch_id=branch.pk, last=branch.head_seq)
        self._move_head(head)

    def _row(self, placed: Placed, blobs: dict[bytes, int], adapt: object) -> tuple[object, ...]:
        event, node = placed.event, placed.node
        tokens = content_tokens(event.content) if event.tokens is None else event.tokens
        self.tree.event_count += 1
        self.tree.token_count += tokens
        return (
            self.session.pk, node.branch_id, node.seq, event.event_id, placed.parent_event_id, event.kind, event.role,
            tokens, memory_tokens(event.content, tokens), event.tool_call_id, node.depth, node.prefix_hash, blobs[placed.digest],
            adapt(event.occurred_at or self._now),  # type: ignore[operator]
        )  # fmt: skip

    def _move_head(self, head: Node | None) -> None:
        if head is not None:
            self.tree.head_branch_id = head.branch_id
            self.tree.head_seq = head.seq
            self.tree.head_path = [list(stretch) for stretch in head.path]
        tree = self.tree
        path = json.dumps(tree.head_path)
        with connection.cursor() as cursor:
            place = [tree.head_branch_id, tree.head_seq, path, tree.event_count, tree.token_count, tree.session_id]
            cursor.execute(_STAND, place)


def content_tokens(content: bytes) -> int:
    """Return about how many tokens a content takes."""
    if content.isascii():
        return max(1, len(content) // 4)  # the estimate's own rule, without decoding
    return estimate_tokens(content.decode())


def lock_tree(session: Session) -> SessionTree:
    """Return the session's tree row, locked until the transaction ends and made on first use."""
    found = SessionTree.objects.select_for_update().filter(session=session).first()
    if found is None:
        SessionTree.objects.bulk_create([SessionTree(session=session)], ignore_conflicts=True)
        found = SessionTree.objects.select_for_update().get(session=session)
    return found
