"""The ground floor: the clock, ids, token estimates and the kinds of errors. Knows nothing of Django or of any room."""
