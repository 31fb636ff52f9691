"""ROOM 1, short term: the provider's prompt cache, what it costs, and why a request missed it.

usage record   the tokens and the price of one model response; one per response, whoever reports it and however often
counters       input (uncached), cache write 5m and 1h, cache read, output: disjoint, so they add up
price book     effective-dated list prices plus the workspace's own; its version stands beside every amount
unpriced       a model without a price: tokens without dollars, never zero dollars
flagged        a record that can't be right: stored, shown, left out of sums
daily sums     the roll-ups of a day in the workspace's own time zone, kept in the ledger's transaction
breakpoint     a block marked with `cache_control`; writes happen there and nowhere else
miss           a request that read less than the one before it had cached; the doctor says which block and what it cost
Doors: api/prompt_cache*.py, api/transcript_imports.py, anthropic_api/messages.py, the pages report, doctor, planner, prices.
"""
