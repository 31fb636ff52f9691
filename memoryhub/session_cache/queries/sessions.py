"""Reads of sessions, inside what a key is bound to."""

from datetime import datetime

from django.db.models import QuerySet

from memoryhub.session_cache.queries.tree import UnknownSession
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import Principal


def visible_sessions(principal: Principal) -> QuerySet[Session]:
    """Return the sessions that the caller may see: of the workspace, and of what a bound key is bound to."""
    found = Session.objects.filter(workspace=principal.workspace).select_related("agent", "tree", "workspace")
    binding = principal.binding
    if binding.agent:
        found = found.filter(agent__name=binding.agent)
    if binding.user:
        found = found.filter(user=binding.user)
    if binding.project:
        found = found.filter(project=binding.project)
    return found


def get_session(principal: Principal, sid: str) -> Session:
    """Return the session of the caller's own id."""
    session = visible_sessions(principal).filter(sid=sid).first()
    if session is None:
        raise UnknownSession(f"There is no session {sid[:200]!r} in this workspace.")
    return session


def list_sessions(
    principal: Principal,
    *,
    agent: str | None = None,
    user: str | None = None,
    project: str | None = None,
    since: datetime | None = None,
) -> QuerySet[Session]:
    """Return sessions, to be cut by cursor, the last active first."""
    found = visible_sessions(principal)
    if agent is not None:
        found = found.filter(agent__name=agent)
    if user is not None:
        found = found.filter(user=user)
    if project is not None:
        found = found.filter(project=project)
    return found if since is None else found.filter(last_active_at__gte=since)
