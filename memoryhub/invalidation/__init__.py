"""The shelf of strategies: how cached things go stale, in one visible place.

An entry is *snapshotted* when it is stored (what it depends on, how long it may live). At each look-up the caller shows
its *evidence* (fingerprints it took, the time, what the hub sees itself) and a strategy gives a *verdict* with its
reason: fresh, expired, stale, or unproven. A *change* that somebody announces is a *selector*: tool, tag, path, key.

Words: expire (time), invalidate (known to be wrong), evict (no room). An *epoch* counts a workspace's invalidations,
so a value that was computed before one can never be stored after it.
Doors: `/api/v1/invalidations` and its stream, the page Invalidate, write tools. A new strategy is one file in
`strategies/`, one line in its table, one test file.
"""
