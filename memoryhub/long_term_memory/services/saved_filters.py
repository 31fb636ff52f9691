"""Filters of the memories page that a team keeps under a name. They live in the workspace's settings."""

from dataclasses import dataclass

from django.db import transaction

from memoryhub.audit.services import record_event
from memoryhub.common import errors
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

SETTING = "memory_filters"
MAX_FILTERS = 50
MAX_NAME_CHARS = 60
MAX_QUERY_CHARS = 2_000


class InvalidFilter(errors.Invalid):
    slug = "invalid-saved-filter"
    title = "This filter can't be saved"


@dataclass(frozen=True, slots=True)
class SavedFilter:
    """A name and the query string that it stands for."""

    name: str
    query: str


def list_saved_filters(workspace: Workspace) -> list[SavedFilter]:
    """Return the workspace's filters by name."""
    kept = workspace.settings.get(SETTING) or {}
    return [SavedFilter(name, kept[name]) for name in sorted(kept, key=str.casefold)]


def save_filter(*, workspace: Workspace, actor: Actor, name: str, query: str) -> SavedFilter:
    """Keep a filter for the whole team; one of the same name is replaced."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME_CHARS:
        raise InvalidFilter(f"A filter's name takes 1 to {MAX_NAME_CHARS} characters.")
    if not query or len(query) > MAX_QUERY_CHARS:
        raise InvalidFilter("Choose at least one filter, and not more than an address can hold.")
    with transaction.atomic():
        row, kept = _locked(workspace)
        if name not in kept and len(kept) >= MAX_FILTERS:
            raise InvalidFilter(f"A workspace keeps at most {MAX_FILTERS} filters. Remove one first.")
        _store(row, workspace, {**kept, name: query})
        detail = {"name": name, "query": query}
        record_event(workspace=workspace, actor=actor, action="save_filter", subject_type="workspace", detail=detail)
    return SavedFilter(name, query)


def remove_filter(*, workspace: Workspace, actor: Actor, name: str) -> None:
    """Take a filter away for the whole team."""
    with transaction.atomic():
        row, kept = _locked(workspace)
        if name not in kept:
            raise errors.NotFound("There is no such filter in this workspace.")
        _store(row, workspace, {key: query for key, query in kept.items() if key != name})
        record_event(
            workspace=workspace, actor=actor, action="remove_filter", subject_type="workspace", detail={"name": name}
        )


def _locked(workspace: Workspace) -> tuple[Workspace, dict[str, str]]:
    row = Workspace.objects.select_for_update().get(pk=workspace.pk)
    return row, dict(row.settings.get(SETTING) or {})


def _store(row: Workspace, workspace: Workspace, kept: dict[str, str]) -> None:
    row.settings[SETTING] = kept
    row.save(update_fields=["settings"])
    workspace.settings = row.settings
