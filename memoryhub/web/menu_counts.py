"""The few counts beside the menu's items. Each is one indexed query, read up to the cap that is shown as "10,000+"."""

from datetime import timedelta

from memoryhub.common import clock
from memoryhub.common.keyset import COUNT_CAP
from memoryhub.long_term_memory.queries import count_open_reviews
from memoryhub.long_term_memory.queries.page_rows import count_alive
from memoryhub.prompt_cache.queries.miss_causes import count_misses_after
from memoryhub.prompt_cache.queries.records import count_unpriced_models
from memoryhub.work.queries import count_dead_jobs
from memoryhub.workspaces.models import Workspace


def count_for_menu(workspace: Workspace) -> dict[str, int]:
    """Return the counts by the name of the menu's item."""
    week_ago = clock.now() - timedelta(days=7)
    return {
        "doctor": count_misses_after(workspace, week_ago, cap=COUNT_CAP),
        "memories": count_alive(workspace),
        "review": count_open_reviews(workspace),
        "prices": count_unpriced_models(workspace),
        "jobs": count_dead_jobs(workspace),
    }
