"""The few counts beside the menu's items. Each is one indexed query, read up to the cap that is shown as "10,000+"."""

from memoryhub.work.queries import summarize_queue
from memoryhub.workspaces.models import Workspace


def count_for_menu(workspace: Workspace) -> dict[str, int]:
    """Return the counts by the name of the menu's item."""
    return {"jobs": summarize_queue(workspace).dead}
