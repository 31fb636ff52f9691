"""When it fits: things that change at their own pace and tell nobody: web searches, prices, other people's APIs.
What it costs: nothing at look-up; a stale answer for up to the TTL, a needless run after it.
What it cannot see: a change inside the TTL.
"""

import hashlib
from datetime import datetime, timedelta

from memoryhub.invalidation.domain.verdict import CLOCK_TOLERANCE, Evidence, Snapshot, State, Verdict

MAX_TTL_SECONDS = 10 * 365 * 86400  # ten years: beyond it, "manual" is meant


class TtlStrategy:
    name = "ttl"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        """Fresh until its time is over; an entry from the future was stored by a clock that has stepped back."""
        if snapshot.stored_at > evidence.now + CLOCK_TOLERANCE:
            return Verdict(State.STALE, self.name)
        if evidence.max_age is not None and evidence.now - snapshot.stored_at > evidence.max_age:
            return Verdict(State.EXPIRED, self.name)
        usable_until = snapshot.usable_until or snapshot.expires_at
        if usable_until is not None and evidence.now >= usable_until:
            return Verdict(State.EXPIRED, self.name)
        return Verdict(State.FRESH, self.name, verified_by="ttl")


def expiry(stored_at: datetime, ttl_seconds: float, *, jitter: float = 0.0, key: str = "") -> datetime:
    """Return when an entry expires. Jitter shortens it by up to that share, the same for the same key.

    Entries that were stored together then do not all run out, and run again, in one second.
    """
    share = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32 if jitter else 0.0
    return stored_at + timedelta(seconds=ttl_seconds * (1 - jitter * share))
