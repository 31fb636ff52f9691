"""Later work: the Job row and its lease.

A service leaves a row here in its own transaction; jobs/ does it. The row is the truth, the queue only a doorbell: a bell that
is lost is rung again by the sweep, and a worker that dies leaves a lease that runs out. Words: queued, running, done, failed
(will be tried again), dead (tried often enough; a person may retry).
"""
