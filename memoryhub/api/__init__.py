"""The door for agents: JSON over HTTP at /api/v1.

app.py lists the routers, one module per noun; schemas/ holds the In and Out shapes; auth.py says who stands there; errors.py turns
the rooms' errors into problem+json; pagination.py cuts lists by cursor; idempotency.py replays answers. Doors are thin: parse,
one call, shape. They never import each other.
"""
