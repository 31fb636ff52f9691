"""Dropping the tool results that an announced change touches. Called by flows/invalidate.py, which logs it."""

from datetime import datetime

from memoryhub.invalidation.domain.selector import Selector
from memoryhub.session_cache.models import ToolKey, ToolResult
from memoryhub.session_cache.queries import tool_results as queries
from memoryhub.session_cache.services.entries import doomed, remove_entries
from memoryhub.workspaces.models import Workspace


def count_selected(*, workspace: Workspace, selector: Selector) -> int:
    """Return how many entries the change would drop."""
    return queries.select(workspace, selector).count()


def has_something(*, workspace: Workspace, now: datetime) -> bool:
    """Tell whether there is anything that a change could concern: a stored result, or one that is being computed."""
    return ToolResult.objects.filter(workspace=workspace).exists() or queries.is_computing(workspace, now)


def drop_selected(*, workspace: Workspace, selector: Selector) -> int:
    """Drop the entries that the change touches and return how many; call it inside the invalidation's transaction."""
    rows = queries.select(workspace, selector).values_list("pk", "space_id", "key", "size_bytes")
    return remove_entries(workspace_id=workspace.pk, entries=doomed(rows), gone=ToolKey.Gone.INVALIDATED)
