"""The shape that every strategy has."""

from typing import Protocol

from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, Verdict


class Strategy(Protocol):
    """One way to tell whether a cached thing is still good. It keeps no state and reads nothing but its arguments."""

    name: str

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Return what this strategy can say about the entry, given the evidence."""
        ...
