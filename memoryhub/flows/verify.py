"""Checking a workspace's rows against each other, room by room."""

from collections.abc import Callable, Iterator

from memoryhub.long_term_memory.queries.checks import list_damaged_contents, list_index_gaps
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.session_cache.queries.checks import list_damaged_blobs, list_wrong_spaces
from memoryhub.workspaces.models import Workspace

Check = Callable[[Workspace], list[str]]
CHECKS: dict[str, Check] = {
    "the ledger's daily sums": lambda workspace: check_rollups(workspace=workspace),
    "sizes of tool spaces": list_wrong_spaces,
    "contents of events": list_damaged_blobs,
    "the search index": list_index_gaps,
    "texts of memories": list_damaged_contents,
}


def verify_workspace(workspace: Workspace) -> Iterator[tuple[str, list[str]]]:
    """Yield (what was checked, what is wrong with it)."""
    for name, check in CHECKS.items():
        yield name, check(workspace)
