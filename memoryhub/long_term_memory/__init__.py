"""Room 3, long-term memory: what agents keep between sessions.

Words: a *memory* is a sentence or note in a *scope* (agent, user, project). Its *strength* is derived from importance,
idle time and accesses, and falls along a *curve*; states go `active > fading > archived > forgotten > erased`. A
*recall* is a search by an agent that counts as an access and leaves a *receipt*. *Supersede* puts a newer memory in
the place of an older one; *forget* moves to the trash; *erase* removes every trace. Every write belongs to a *change
set* that can be reverted.

Inside: `domain/` rules without Django, `search/` from a query to a ranked page, `models.py`, `queries.py` (reads),
`services/` (writes, by noun). Doors: REST, MCP, the memory tool, Anthropic's memory-stores wire, pages, jobs.
"""
