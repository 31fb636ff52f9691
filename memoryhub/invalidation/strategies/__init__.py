"""The table of strategies. Read it as a table of contents: one file each, every file the same shape.

To add one: copy the nearest file, add its line to STRATEGIES, add its test file beside the others.
"""

from memoryhub.invalidation.domain.dependency import Match, compare
from memoryhub.invalidation.domain.verdict import UNKNOWN_WRITE, Evidence, Snapshot, State, Verdict
from memoryhub.invalidation.strategies.dependency import DependencyStrategy
from memoryhub.invalidation.strategies.event import EventStrategy
from memoryhub.invalidation.strategies.fingerprint import FingerprintStrategy
from memoryhub.invalidation.strategies.hybrid import HybridStrategy
from memoryhub.invalidation.strategies.manual import ManualStrategy
from memoryhub.invalidation.strategies.protocol import Strategy
from memoryhub.invalidation.strategies.ttl import TtlStrategy

STRATEGIES: dict[str, Strategy] = {
    "ttl": TtlStrategy(),  # good for a while
    "fingerprint": FingerprintStrategy(),  # good while its files look the same
    "dependency": DependencyStrategy(),  # good while its tags, etags and versions stand
    "event": EventStrategy(),  # good until a watched folder reports a change
    "manual": ManualStrategy(),  # good until somebody says otherwise
    "hybrid": HybridStrategy(),  # all of what the entry knows about itself
}
DEFAULT_STRATEGY = "hybrid"


def judge(strategy: str, snapshot: Snapshot, evidence: Evidence) -> Verdict:
    """Judge an entry: never against an announced change or shown evidence, never past its time, then by its strategy.

    After a tool ran that may have changed any file, time and events prove no file any more: only a look does.
    """
    for ground_rule in (_announced, _contradicted, _out_of_time):
        verdict = ground_rule(snapshot, evidence)
        if verdict is not None:
            return verdict
    verdict = STRATEGIES[strategy].judge(snapshot, evidence)
    if verdict.is_fresh and evidence.unknown_write:
        verdict = _proven_again(verdict, snapshot, evidence)
    if verdict.is_fresh and snapshot.expires_at is not None and evidence.now >= snapshot.expires_at:
        return Verdict(State.FRESH, verdict.strategy, verdict.verified_by, revalidate=True)
    return verdict


def _announced(snapshot: Snapshot, evidence: Evidence) -> Verdict | None:
    verdict = STRATEGIES["manual"].judge(snapshot, evidence)
    return None if verdict.is_fresh else verdict


def _contradicted(snapshot: Snapshot, evidence: Evidence) -> Verdict | None:
    for dependency in snapshot.dependencies if evidence.shown else ():
        shown = evidence.shown.get(dependency.identity)
        if shown is not None and compare(dependency, shown) is Match.DIFFERENT:
            return Verdict(State.STALE, "fingerprint" if dependency.is_path else "dependency")
    return None


def _out_of_time(snapshot: Snapshot, evidence: Evidence) -> Verdict | None:
    verdict = STRATEGIES["ttl"].judge(snapshot, evidence)
    return None if verdict.is_fresh else verdict


def _proven_again(verdict: Verdict, snapshot: Snapshot, evidence: Evidence) -> Verdict:
    if not snapshot.files:  # nothing says which files to look at, if it was made of any
        return Verdict(State.STALE, verdict.strategy, because=UNKNOWN_WRITE) if snapshot.is_rooted else verdict
    seen = STRATEGIES["fingerprint"].judge(snapshot, evidence)
    because = "" if seen.is_fresh else UNKNOWN_WRITE
    return Verdict(seen.state, verdict.strategy, verified_by=seen.verified_by, because=because)
