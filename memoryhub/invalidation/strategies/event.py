"""When it fits: many files below one folder on a machine that the hub can watch, where a stat of each would be slow.
What it costs: a watcher per folder; look-ups cost nothing.
What it cannot see: changes in the moments before the watcher reports them, and anything while it was not watching.
"""

from datetime import datetime

from memoryhub.invalidation.domain.dependency import Dependency, Match, compare_all
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict


class EventStrategy:
    name = "event"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Fresh while every file lies below a folder that has been watched without a gap since the entry was stored.

        Where none is watched, a look at all of them does as well.
        """
        files = snapshot.files
        if not files:
            return Verdict(State.FRESH, self.name, verified_by="ttl")
        if all(_watched(file, snapshot.stored_at, evidence) for file in files):
            return Verdict(State.FRESH, self.name, verified_by="event")
        match = compare_all(files, evidence.shown)
        if match in (Match.PROVEN_BY_HASH, Match.PROVEN_BY_FINGERPRINT):
            return Verdict(State.FRESH, self.name, verified_by=match.value)
        return Verdict(State.STALE if match is Match.DIFFERENT else State.UNPROVEN, self.name)


def _watched(file: Dependency, stored_at: datetime, evidence: Evidence) -> bool:
    return any(
        since <= stored_at and (file.name == root or file.name.startswith(root.rstrip("/") + "/"))
        for root, since in evidence.watched_since.items()
    )
