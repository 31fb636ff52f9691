"""Who: the people, keys and agents that share a hub, and the sessions they work in.

Workspace    a team's own shelf; everything that is stored belongs to exactly one
Membership   a person's role in a workspace: viewer, editor or admin
ApiKey       an agent's way in, with scopes, shown once and stored as an HMAC
Agent        a named agent of a workspace
Session      the identity of one conversation (its events live in session_cache)
Principal    whoever stands at a door, with what they may do (principals.py)

Doors: api/auth.py for keys, web/access.py for people, the commands create_workspace, create_user, create_api_key.
"""
