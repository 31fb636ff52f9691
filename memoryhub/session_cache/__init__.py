"""Room 2, the medium term: what one session has computed, and what it has said.

Tool results: the same tool with the same parameters runs once. A hit comes with its proof; a value computed before an
invalidation is never stored after it; only tools that a policy declares cacheable are cached.
Context windows: a session's events form a tree; the window at a node is the exact sequence from the root, cut at the
last compaction. Rewind moves the head, fork starts a session that shares its past; neither copies or deletes.

Words: cache key, lease, generation, space (what one session, or the workspace, may fill), branch, head, window, fork.
Doors: `/api/v1/sessions`, its `/tool-results`, `/tool-policies`; the pages Sessions, Session, Tool cache.
"""
