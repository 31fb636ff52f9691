"""What was done, by whom and why.

ChangeSet         one write by a person, agent, job, import or bulk action; rooms point at it, and it can be reverted
AuditEvent        one line of the log: who did what to which thing
IdempotentReply   the answer to a request with an Idempotency-Key, replayed for a day
"""
