"""The rules that a draft must keep before it may be stored."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from memoryhub.long_term_memory.domain import guards
from memoryhub.long_term_memory.domain.paths import check_path
from memoryhub.long_term_memory.domain.scoping import ScopeClash, ScopeNames
from memoryhub.long_term_memory.models import Kind, MemoryState, Trust
from memoryhub.long_term_memory.services.writer import (
    MAX_TAG_CHARS,
    MAX_TAGS,
    InvalidMemory,
    MemoryDraft,
    MemoryTooLarge,
)
from memoryhub.workspaces.principals import Binding, OutsideBinding

_CONTROL = re.compile(r"[\x00-\x1f]")
KINDS, STATES, TRUSTS = frozenset(Kind.values), frozenset(MemoryState.values), frozenset(Trust.values)


def check_content(content: str, *, may_be_empty: bool = False) -> str:
    """Return the text, or raise InvalidMemory or MemoryTooLarge. A file may be empty."""
    if not content.strip() and not may_be_empty:
        raise InvalidMemory("content must not be empty.")
    if "\x00" in content:
        raise InvalidMemory("content must not hold the character NUL.")
    if (
        len(content) > guards.MAX_CONTENT_BYTES // 4
        and len(content.encode("utf-8", "surrogatepass")) > guards.MAX_CONTENT_BYTES
    ):
        raise MemoryTooLarge(f"content takes at most {guards.MAX_CONTENT_BYTES} bytes in UTF-8.")
    try:
        content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidMemory("content holds half of a Unicode surrogate pair.") from error
    return content


def check_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without surrounding blanks and doubles, in order; raises InvalidMemory."""
    cleaned = tuple(dict.fromkeys([tag.strip() for tag in tags]))
    if len(cleaned) > MAX_TAGS:
        raise InvalidMemory(f"A memory takes at most {MAX_TAGS} tags.")
    for tag in cleaned:
        if not tag or len(tag) > MAX_TAG_CHARS or _CONTROL.search(tag):
            raise InvalidMemory(f"A tag takes 1 to {MAX_TAG_CHARS} characters, none of them control characters.")
    return cleaned


def check_importance(importance: float) -> float:
    if not 0 <= importance <= 1:  # also refuses NaN
        raise InvalidMemory("importance must lie between 0 and 1.")
    return float(importance)


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise InvalidMemory(f"kind must be one of {', '.join(Kind.values)}.")
    return kind


def check_memory_path(path: str) -> str:
    try:
        return check_path(path)
    except ValueError as error:
        raise InvalidMemory(f"path: {error}.") from error


def check_subject(subject: str) -> str:
    if len(subject) > 200 or _CONTROL.search(subject):
        raise InvalidMemory("subject takes at most 200 characters, none of them control characters.")
    return subject


def check_validity(valid_from: datetime | None, valid_until: datetime | None) -> None:
    if valid_from and valid_until and valid_from >= valid_until:
        raise InvalidMemory("valid_from must lie before valid_until.")


def bind(scope: ScopeNames, binding: Binding) -> ScopeNames:
    """The scope inside a writer's binding; raises where it lies outside or names nobody."""
    return _bound(scope, binding.agent, binding.user, binding.project)


@lru_cache(maxsize=4_096)
def _bound(scope: ScopeNames, agent: str | None, user: str | None, project: str | None) -> ScopeNames:
    try:
        bound = scope.check().within(agent=agent, user=user, project=project)
    except ScopeClash as error:
        raise OutsideBinding(f"This write lies outside: {error}.") from error
    except ValueError as error:
        raise InvalidMemory(f"{error}.") from error
    if not bound:
        raise InvalidMemory("scope must name an agent, a user or a project.")
    return bound


def check_draft(draft: MemoryDraft, binding: Binding) -> MemoryDraft:
    """The draft in its stored form: inside the binding, tags without doubles, the path in its plain form.

    Raises InvalidMemory, MemoryTooLarge or OutsideBinding.
    """
    check_content(draft.content, may_be_empty=draft.path is not None)
    check_validity(draft.valid_from, draft.valid_until)
    if draft.state not in STATES:
        raise InvalidMemory(f"state must be one of {', '.join(MemoryState.values)}.")
    if draft.trust is not None and draft.trust not in TRUSTS:
        raise InvalidMemory(f"trust must be one of {', '.join(Trust.values)}.")
    cleaned: dict[str, Any] = {
        "scope": bind(draft.scope, binding),
        "importance": check_importance(draft.importance),
        "kind": check_kind(draft.kind),
        "subject": check_subject(draft.subject),
        "path": check_memory_path(draft.path) if draft.path is not None else None,
    }
    changed = {name: value for name, value in cleaned.items() if value != getattr(draft, name)}
    tags = check_tags(draft.tags)
    if list(tags) != list(draft.tags):
        changed["tags"] = tags
    return replace(draft, **changed) if changed else draft
