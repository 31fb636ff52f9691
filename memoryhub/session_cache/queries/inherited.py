"""Which sessions a fork grew from."""

from memoryhub.session_cache.models import Branch, SessionTree
from memoryhub.workspaces.models import Session

MAX_GENERATIONS = 8  # of forks of forks whose tool results are still looked for


def list_ancestor_sids(session_id: int) -> list[str]:
    """Return the sids of the sessions whose past this one shares, the nearest first."""
    tree = SessionTree.objects.filter(session_id=session_id).only("origin_branch_id").first()
    if tree is None or tree.origin_branch_id is None:
        return []
    origin = Branch.objects.only("id", "path").get(pk=tree.origin_branch_id)
    branches = [*(branch for branch, _ in origin.inherited), origin.pk]
    sessions = dict(Branch.objects.filter(pk__in=branches).values_list("pk", "session_id"))
    nearest_first = list(dict.fromkeys(sessions[branch] for branch in reversed(branches) if branch in sessions))
    sids = dict(Session.objects.filter(pk__in=nearest_first).values_list("pk", "sid"))
    return [sids[pk] for pk in nearest_first if pk in sids][:MAX_GENERATIONS]
