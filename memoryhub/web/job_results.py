"""What a job did, in the viewer's words: its figures, and what it left out with the reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from memoryhub.web import formats

SHOWN_LEFT_OUT = 50
NAMES: dict[str, Any] = {
    "admins": pgettext_lazy("result of a job", "Admins who see it"),
    "archived": pgettext_lazy("result of a job", "Archived"),
    "asked": pgettext_lazy("result of a job", "Offered for review"),
    "backups": gettext_lazy("Backups that still hold it"),
    "blobs": gettext_lazy("Unused contents removed"),
    "bodies": gettext_lazy("Request bodies removed"),
    "candidates": pgettext_lazy("result of a job", "New"),
    "carried": gettext_lazy("Requests whose recalled memories were noted"),
    "changed": pgettext_lazy("result of a job", "Changed"),
    "conflicts": pgettext_lazy("result of a job", "Contradictions"),
    "created": pgettext_lazy("result of a job", "Created"),
    "daily_sums": gettext_lazy("Daily sums made anew"),
    "days": gettext_lazy("Days summed up"),
    "deduplicated": gettext_lazy("Already there"),
    "delivered": gettext_lazy("Messages delivered"),
    "diagnosed": gettext_lazy("Requests diagnosed"),
    "dry_run": gettext_lazy("Trial only"),
    "embedded": gettext_lazy("Memories embedded"),
    "erased": gettext_lazy("Erased from the trash"),
    "error_count": gettext_lazy("Lines that could not be read"),
    "events": pgettext_lazy("result of a job", "Events"),
    "expired": gettext_lazy("Expired results removed"),
    "fading": gettext_lazy("Began to fade"),
    "files": pgettext_lazy("result of a job", "Files"),
    "forgotten": pgettext_lazy("result of a job", "Forgotten"),
    "format": pgettext_lazy("result of a job", "Format"),
    "found": pgettext_lazy("result of a job", "Found"),
    "given_up": gettext_lazy("Messages given up"),
    "jobs": gettext_lazy("Old jobs removed"),
    "keys": gettext_lazy("Old states of keys removed"),
    "known": gettext_lazy("Already known"),
    "lines": pgettext_lazy("result of a job", "Lines"),
    "matched": pgettext_lazy("result of a job", "Matched"),
    "memories": pgettext_lazy("result of a job", "Memories"),
    "messages": gettext_lazy("Old messages to webhooks removed"),
    "model": pgettext_lazy("result of a job", "Model"),
    "newly_priced": gettext_lazy("Priced for the first time"),
    "offered": pgettext_lazy("result of a job", "Offered for review"),
    "receipts": gettext_lazy("Recall receipts"),
    "records": pgettext_lazy("result of a job", "Usage records"),
    "redrawn": gettext_lazy("Curves drawn"),
    "replies": gettext_lazy("Stored answers removed"),
    "reverted": gettext_lazy("Taken back"),
    "rows": pgettext_lazy("result of a job", "Rows"),
    "sessions": pgettext_lazy("result of a job", "Sessions"),
    "sessions_kept": gettext_lazy("Sessions kept for forks of others"),
    "skipped": gettext_lazy("Left out"),
    "skipped_count": gettext_lazy("Left out"),
    "stored": pgettext_lazy("result of a job", "Stored"),
    "unchanged": gettext_lazy("Unchanged"),
    "unchanged_files": gettext_lazy("Unchanged files"),
    "updated": pgettext_lazy("result of a job", "Updated"),
    "versions": pgettext_lazy("result of a job", "Versions"),
    "workspace": pgettext_lazy("result of a job", "Workspace"),
}
_SAID_ELSEWHERE = ("change_set", "usage", "conflict_items", "errors")  # as a link, on the report, or by their count
_LEFT_OUT = "skipped "  # followed by the id of a memory


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a job could not do: where, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """Figures by their names, then what was left out, the first SHOWN_LEFT_OUT."""

    figures: list[tuple[str, str]]
    left_out: list[LeftOut]


def describe(result: Mapping[str, Any]) -> JobOutcome:
    """Tell a job's result; what nobody gave a name to is shown under the handler's own."""
    figures = []
    for name, value in result.items():
        if name in _SAID_ELSEWHERE or name.startswith(_LEFT_OUT):
            continue
        if (name == "dry_run" and not value) or (name == "skipped" and "skipped_count" in result):
            continue
        if isinstance(value, Mapping):  # such as the records of an import: created, updated, unchanged
            figures += [(f"{_named(name)}: {_named(inner)}", _plain(one)) for inner, one in value.items()]
        else:
            figures.append((_named(name), _plain(value)))
    return JobOutcome(figures, list(_left_out(result))[:SHOWN_LEFT_OUT])


def _named(name: str) -> str:
    return str(NAMES.get(name, name.replace("_", " ")))


def _plain(value: Any) -> str:
    if value is None:
        return formats.NOTHING
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return formats.count(len(value))
    return formats.count(value) if isinstance(value, int) else str(value)[:200]


def _left_out(result: Mapping[str, Any]) -> Iterator[LeftOut]:
    for listed in ("errors", "skipped", "conflict_items"):
        items = result.get(listed)
        for item in items if isinstance(items, list) else []:
            if isinstance(item, Mapping):
                yield LeftOut(_place(item), str(item.get("reason", ""))[:500])
    for name, value in result.items():
        if name.startswith(_LEFT_OUT):
            yield LeftOut(name.removeprefix(_LEFT_OUT), str(value)[:500])


def _place(item: Mapping[str, Any]) -> str:
    file, line = item.get("file"), item.get("line")
    parts = [str(file)] if file else []
    parts += [_("line %(line)s") % {"line": line}] if line else []
    return ", ".join(parts) or str(item.get("id", ""))
