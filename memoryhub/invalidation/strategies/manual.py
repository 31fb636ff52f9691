"""When it fits: results that stay right until a person, an agent or a write tool says otherwise: a plan, a summary.
What it costs: somebody has to say so; one indexed update per announcement.
What it cannot see: anything that nobody announces.
"""

from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict


class ManualStrategy:
    name = "manual"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Invalidated when an announced change touches the entry; fresh otherwise, without an end by time."""
        subject = snapshot.subject
        if subject is not None and any(change.touches(subject) for change in evidence.changes):
            return Verdict(State.INVALIDATED, self.name)
        return Verdict(State.FRESH, self.name, verified_by="ttl")
