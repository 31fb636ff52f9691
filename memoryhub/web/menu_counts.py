"""The few counts beside the menu's items. Each is one indexed query, read up to the cap that is shown as "10,000+"."""

from datetime import timedelta

from memoryhub.common import clock
from memoryhub.long_term_memory.models import Memory, MemoryState, ReviewItem, ReviewState
from memoryhub.long_term_memory.queries.memories import COUNT_CAP, count_capped
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.queries.miss_causes import count_misses_after
from memoryhub.work.models import Job, JobState
from memoryhub.workspaces.models import Workspace


def count_for_menu(workspace: Workspace) -> dict[str, int]:
    """Return the counts by the name of the menu's item."""
    memories = Memory.objects.filter(workspace=workspace, state__in=[MemoryState.ACTIVE, MemoryState.FADING])
    reviews = ReviewItem.objects.filter(workspace=workspace, state=ReviewState.OPEN)
    week_ago = clock.now() - timedelta(days=7)
    return {
        "doctor": count_misses_after(workspace, week_ago, cap=COUNT_CAP),
        "memories": count_capped(memories),
        "review": count_capped(reviews),
        "prices": UsageRecord.objects.of(workspace).unpriced().values("model").distinct().count(),
        "jobs": count_capped(Job.objects.filter(workspace=workspace, state=JobState.DEAD)),
    }
