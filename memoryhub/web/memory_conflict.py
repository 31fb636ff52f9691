"""Two people changed one memory: both versions side by side, and what is sent again to save one over the other."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from memoryhub.long_term_memory.domain.duplicates import word_diff
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.long_term_memory.queries.page_memory import find_version
from memoryhub.long_term_memory.services.writer import UNSET, MemoryChanges
from memoryhub.web.change_words import actor_label
from memoryhub.web.memory_filters import MemoryFilters
from memoryhub.web.memory_rows import memory_url
from memoryhub.web.memory_versions import fact_label, fact_text


@dataclass(frozen=True, slots=True)
class Line:
    """A field with its value."""

    label: str
    value: str


def describe_conflict(
    memory: Memory, changes: MemoryChanges, seen: int, filters: MemoryFilters, *, in_row: bool
) -> dict[str, Any]:
    """Return what the conflict view shows and sends again; nothing of either side is lost."""
    mine = _asked(changes)
    before, now = find_version(memory, seen), find_version(memory, memory.version)
    changed = _changed_between(before, memory)
    theirs = {name: _current(memory, name) for name in (*mine, *(name for name in changed if name not in mine))}
    path = reverse("memories")
    return {
        "id": memory.public_id,
        "memory_url": memory_url(memory.public_id),
        "version": memory.version,
        "who": actor_label(now.actor_kind, now.actor_label) if now else _("somebody"),
        "when": now.created_at if now else memory.metadata_changed_at,
        "theirs": [Line(fact_label(name), fact_text(name, value)) for name, value in theirs.items()],
        "mine": [Line(fact_label(name), fact_text(name, value)) for name, value in mine.items()],
        "diff": word_diff(memory.content, changes.content) if changes.content is not UNSET else [],
        "fields": _fields(changes),
        "url": reverse("edit_memory", args=[memory.public_id]),
        "row_url": f"{path}?{filters.query_string([('row', memory.public_id)])}" if in_row else "",
    }


def _asked(changes: MemoryChanges) -> dict[str, Any]:
    """What the person wanted to save, by field."""
    names = ("content", "subject", "kind", "importance", "tags", "valid_until")
    out = {name: getattr(changes, name) for name in names if getattr(changes, name) is not UNSET}
    if changes.add_tags or changes.remove_tags:
        out["tags"] = [*(f"+{tag}" for tag in changes.add_tags), *(f"-{tag}" for tag in changes.remove_tags)]
    return out


def _current(memory: Memory, name: str) -> Any:
    return tag_names(memory) if name == "tags" else getattr(memory, name)


def _changed_between(before: MemoryVersion | None, memory: Memory) -> list[str]:
    """The fields in which the memory differs from the version that the person saw."""
    if before is None:
        return ["content"]
    names = [
        name for name in ("subject", "kind", "importance", "tags") if before.facts.get(name) != _current(memory, name)
    ]
    return (["content"] if before.content != memory.content else []) + names


def _fields(changes: MemoryChanges) -> list[tuple[str, str]]:
    """The form fields that ask for the same changes again."""
    out: list[tuple[str, str]] = [("remove_tag", tag) for tag in changes.remove_tags]
    if changes.add_tags:
        out.append(("add_tag", ", ".join(changes.add_tags)))
    if changes.importance is not UNSET:
        out.append(("importance", f"{changes.importance:g}"))
    if changes.content is not UNSET:
        out.append(("content", changes.content))
    if changes.kind is not UNSET:
        out += [("kind", changes.kind), ("subject", str(_given(changes.subject)))]
        out += [("tags", ", ".join(_given(changes.tags) or ())), ("valid_until", _iso(_given(changes.valid_until)))]
    return out


def _given(value: Any) -> Any:
    return "" if value is UNSET else value


def _iso(value: Any) -> str:
    return value.isoformat() if value else ""
