"""Reads of sessions, inside what a key is bound to."""

from datetime import datetime

from django.db import connection
from django.db.models import QuerySet

from memoryhub.common.plain_query import PlainQuery
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


_KNOWN = PlainQuery("SELECT id FROM workspaces_session WHERE workspace_id = %s AND sid = %s")


def find_known_session(principal: Principal, sid: str) -> Session | None:
    """Return the session by one plain query, with its id, sid and workspace alone; for a key that is bound to nothing."""
    row = _KNOWN.fetch([principal.workspace.pk, sid])
    if row is None:
        return None
    session = Session.from_db(connection.alias, ["id", "workspace_id", "sid"], [row[0], principal.workspace.pk, sid])
    session.workspace = principal.workspace
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
