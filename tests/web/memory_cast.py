"""Memories for the tests of pages, written the way agents write them."""

from typing import Any

from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.services import MemoryDraft, Writer, remember
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

XSS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</textarea><script>alert(1)</script>",
    "{{ 7|add:7 }}{% debug %}",
)


def agent_of(workspace: Workspace) -> Writer:
    """An agent that writes through the API."""
    return Writer(workspace=workspace, actor=Actor("key", "lookup", "reviewer's key"), door="api")


def make_memory(workspace: Workspace, content: str = "Prefers small pull requests.", **fields: Any) -> Memory:
    """One memory; `agent`, `user` and `project` name its scope."""
    return make_memories(workspace, [content], **fields)[0]


def make_memories(workspace: Workspace, contents: list[str], **fields: Any) -> list[Memory]:
    """Several memories of one kind."""
    names = {name: fields.pop(name) for name in ("agent", "user", "project") if name in fields}
    scope = ScopeNames(**(names or {"agent": "reviewer", "user": "ana"}))
    imported = "public_id" in fields or "last_accessed_at" in fields
    drafts = [MemoryDraft(content=content, scope=scope, **fields) for content in contents]
    ids = []
    for start in range(0, len(drafts), 500):
        ids += [
            one.id
            for one in remember(writer=agent_of(workspace), drafts=drafts[start : start + 500], imported=imported)
        ]
    found = {memory.public_id: memory for memory in Memory.objects.filter(workspace=workspace)}
    return [found[public_id] for public_id in ids]
