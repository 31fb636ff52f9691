"""The few counts beside the menu's items. Each is one indexed query, read up to the cap that is shown as "10,000+"."""

from memoryhub.long_term_memory.models import Memory, MemoryState, ReviewItem, ReviewState
from memoryhub.long_term_memory.queries.memories import count_capped
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.work.models import Job, JobState
from memoryhub.workspaces.models import Workspace


def count_for_menu(workspace: Workspace) -> dict[str, int]:
    """Return the counts by the name of the menu's item."""
    memories = Memory.objects.filter(workspace=workspace, state__in=[MemoryState.ACTIVE, MemoryState.FADING])
    reviews = ReviewItem.objects.filter(workspace=workspace, state=ReviewState.OPEN)
    return {
        "memories": count_capped(memories),
        "review": count_capped(reviews),
        "prices": UsageRecord.objects.of(workspace).unpriced().values("model").distinct().count(),
        "jobs": count_capped(Job.objects.filter(workspace=workspace, state=JobState.DEAD)),
    }
