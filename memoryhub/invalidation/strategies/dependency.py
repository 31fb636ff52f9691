"""When it fits: results of named things: a url with its etag, a schema or lock file's version, a tag that a deploy drops.
What it costs: nothing at look-up; whoever knows of a change has to say so, or to show the new etag or version.
What it cannot see: a change that nobody shows or announces; the TTL bounds how long that lasts.
"""

from memoryhub.invalidation.domain.dependency import Match, compare
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict


class DependencyStrategy:
    name = "dependency"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Stale when a shown etag or version differs; proven by those that are shown, else good for its TTL."""
        named = [dependency for dependency in snapshot.dependencies if dependency.kind in ("url", "version")]
        matches = [compare(d, evidence.shown[d.identity]) for d in named if d.identity in evidence.shown]
        if Match.DIFFERENT in matches:
            return Verdict(State.STALE, self.name)
        proven = bool(named) and len(matches) == len(named) and Match.UNPROVEN not in matches
        return Verdict(State.FRESH, self.name, verified_by="fingerprint" if proven else "ttl")
