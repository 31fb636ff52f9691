"""The history of a memory for people: what each version changed, word by word and field by field."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memoryhub.long_term_memory.domain.duplicates import DiffPart, word_diff
from memoryhub.long_term_memory.models import Kind, Memory, MemoryState, MemoryVersion, Operation, Trust
from memoryhub.web import formats
from memoryhub.web.change_words import actor_label
from memoryhub.web.memory_rows import clip

COMPARED_CHARS = 3_000  # of each side; word by word beyond that takes seconds
CONTEXT_CHARS = 160  # kept of an unchanged run on each side of a change
SHOWN_CHARS = 2_000  # of a run that came or went
SKIPPED = " […] "
FACT_LABELS: dict[str, Any] = {
    "content": gettext_lazy("content"),
    "subject": gettext_lazy("subject"),
    "kind": pgettext_lazy("kind of memory", "kind"),
    "importance": gettext_lazy("importance"),
    "tags": gettext_lazy("tags"),
    "pinned": gettext_lazy("pinned"),
    "path": gettext_lazy("path"),
    "state": gettext_lazy("state"),
    "trust": gettext_lazy("trust"),
    "scope": gettext_lazy("scope"),
    "superseded_by": gettext_lazy("superseded"),
    "valid_from": gettext_lazy("valid from"),
    "valid_until": gettext_lazy("valid until"),
    "expires_at": gettext_lazy("expires"),
}
_CHOICES: dict[str, dict[str, Any]] = {
    "kind": dict(Kind.choices),
    "state": dict(MemoryState.choices),
    "trust": dict(Trust.choices),
}


@dataclass(frozen=True, slots=True)
class ChangedFact:
    """A field that a version changed."""

    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class VersionView:
    """One version as the page shows it."""

    number: int
    what: str
    who: str
    reason: str
    created_at: datetime
    change_url: str = ""
    text: str = ""
    redacted: str = ""
    redact_url: str = ""
    can_restore: bool = False
    parts: list[DiffPart] = field(default_factory=list)
    facts: list[ChangedFact] = field(default_factory=list)


def view_versions(memory: Memory, rows: Sequence[MemoryVersion], limit: int, *, may_redact: bool) -> list[VersionView]:
    """Return up to `limit` versions, each compared with the one below it."""
    return [
        _view(memory, row, rows[index + 1] if index + 1 < len(rows) else None, may_redact)
        for index, row in enumerate(rows[:limit])
    ]


def _view(memory: Memory, row: MemoryVersion, before: MemoryVersion | None, may_redact: bool) -> VersionView:
    current = row.number == memory.version
    comparable = before is not None and before.content is not None and row.content is not None
    changed = comparable and before is not None and before.content != row.content
    return VersionView(
        number=row.number,
        what=_what(row),
        who=actor_label(row.actor_kind, row.actor_label),
        reason=row.reason,
        created_at=row.created_at,
        change_url=reverse("change", args=[row.change_set.public_id]) if row.change_set else "",
        text=clip(row.content or "", SHOWN_CHARS) if not comparable else "",
        redacted=_("Redacted by %(name)s.") % {"name": row.redacted_by or _("unknown")} if row.redacted_at else "",
        redact_url=reverse("redact_memory_version", args=[memory.public_id, row.public_id])
        if may_redact and not row.redacted_at and not current
        else "",
        can_restore=not current and row.content is not None,
        parts=compare(before.content or "", row.content or "") if changed and before is not None else [],
        facts=list_facts_changed(before.facts, row.facts) if before is not None and row.facts and before.facts else [],
    )


def _what(row: MemoryVersion) -> str:
    if row.restored_from:
        return _("restored version %(number)s") % {"number": row.restored_from}
    return str(Operation(row.operation).label)


def list_facts_changed(before: dict[str, Any], after: dict[str, Any]) -> list[ChangedFact]:
    """Return the fields that differ, in the viewer's words."""
    return [
        ChangedFact(fact_label(name), fact_text(name, before.get(name)), fact_text(name, after.get(name)))
        for name in FACT_LABELS
        if name in after and before.get(name) != after.get(name)
    ]


def fact_label(name: str) -> str:
    """Return a field's name in the viewer's words."""
    return str(FACT_LABELS.get(name, name))


def fact_text(name: str, value: Any) -> str:
    """Return a field's value for reading."""
    if value is None or value == "" or value == []:
        return _("nothing")
    if name == "superseded_by":
        return _("yes")
    if name in _CHOICES:
        return str(_CHOICES[name].get(value, value))
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return " · ".join(str(part) for part in value.values() if part)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    at = (
        value
        if isinstance(value, datetime)
        else parse_datetime(value)
        if name in ("valid_from", "valid_until", "expires_at")
        else None
    )
    return formats.when(at) if at else str(value)


def compare(before: str, after: str) -> list[DiffPart]:
    """Return what changed, word by word, with a little of what stayed around it; bounded for texts of any length."""
    start = _common_start(before, after)
    end = _common_end(before[start:], after[start:])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    if len(old) <= COMPARED_CHARS and len(new) <= COMPARED_CHARS:
        middle = word_diff(old, new)
    else:
        middle = [DiffPart("removed", clip(old, SHOWN_CHARS)), DiffPart("added", clip(new, SHOWN_CHARS))]
    parts = [DiffPart("same", before[:start]), *middle, DiffPart("same", before[len(before) - end :] if end else "")]
    parts = [part for part in parts if part.text]
    return [_shortened(part, first=index == 0, last=index == len(parts) - 1) for index, part in enumerate(parts)]


def _common_start(before: str, after: str) -> int:
    """How many characters both begin with, cut back to the beginning of a word."""
    length = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        length += 1
    while 0 < length < max(len(before), len(after)) and before[length - 1].isalnum() and before[length - 1].isascii():
        length -= 1
    return length


def _common_end(before: str, after: str) -> int:
    return _common_start(before[::-1], after[::-1])


def _shortened(part: DiffPart, *, first: bool, last: bool) -> DiffPart:
    text = part.text
    if part.kind != "same" or len(text) <= 2 * CONTEXT_CHARS + len(SKIPPED):
        return part
    head, tail = text[:CONTEXT_CHARS], text[-CONTEXT_CHARS:]
    if first:
        return DiffPart("same", f"{SKIPPED.lstrip()}{tail}")
    return DiffPart("same", f"{head}{SKIPPED.rstrip()}" if last else f"{head}{SKIPPED}{tail}")
