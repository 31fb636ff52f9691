"""When it fits: most tools, and so the default: read_file = files + time, web_search = time, a query = tags + time.
What it costs: what its parts cost, and only for what the entry depends on.
What it cannot see: what none of its parts can.
"""

from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict
from memoryhub.invalidation.strategies.dependency import DependencyStrategy
from memoryhub.invalidation.strategies.event import EventStrategy
from memoryhub.invalidation.strategies.fingerprint import FingerprintStrategy

_FINGERPRINT, _DEPENDENCY, _EVENT = FingerprintStrategy(), DependencyStrategy(), EventStrategy()


class HybridStrategy:
    name = "hybrid"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Every part must agree: etags and versions unchanged, and each file proven by a look or by its watcher."""
        named = _DEPENDENCY.judge(snapshot, evidence)
        if not named.is_fresh or not snapshot.files:
            return Verdict(named.state, self.name, verified_by=named.verified_by)
        seen = _FINGERPRINT.judge(snapshot, evidence)
        if seen.state is State.UNPROVEN:
            watched = _EVENT.judge(snapshot, evidence)
            seen = watched if watched.is_fresh else seen
        return Verdict(seen.state, self.name, verified_by=seen.verified_by)
