"""A file below a watched folder changed: announce it to every workspace that has, or is computing, something of it."""

import os
from collections.abc import Iterable

from memoryhub.common import clock
from memoryhub.flows.invalidate import announce, preview_invalidation
from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.services import Announcement
from memoryhub.session_cache.queries.tool_results import is_computing
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

MOST_PATHS = 200  # more at once (a checkout, a build, the watcher's overflow) are announced as the whole folder
WATCHER = Actor("job", "watcher", "file watcher")


def announce_changed_files(*, root: str, paths: Iterable[str]) -> int:
    """Announce changed paths below a root and return how many results that dropped. Nothing that depends on them: no line."""
    changed = sorted(set(paths))
    if len(changed) > MOST_PATHS:
        changed = [root]
    dropped = 0
    for workspace in Workspace.objects.order_by("id"):
        computing = is_computing(workspace, clock.now())
        for path in changed:
            selector = Selector(path=os.path.realpath(os.path.dirname(path)) + "/" + os.path.basename(path))
            if not computing and not preview_invalidation(workspace=workspace, selector=selector).matched:
                continue
            change = Announcement(selector, WATCHER, reason="changed on disk", strategy="event", door="watcher")
            dropped += announce(workspace=workspace, announcement=change).invalidated
    return dropped
