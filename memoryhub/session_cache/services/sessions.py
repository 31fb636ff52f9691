"""Opening and describing sessions, inside what a key is bound to."""

from typing import Any

from django.db import transaction

from memoryhub.session_cache.models import ToolSpace
from memoryhub.session_cache.queries.sessions import visible_sessions
from memoryhub.session_cache.queries.tree import UnknownSession
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import OutsideBinding, Principal
from memoryhub.workspaces.services import ensure_session


def open_session(*, principal: Principal, sid: str, **described: Any) -> Session:
    """Return the session, made on its first use; one outside of a bound key's scope is as good as not there.

    `described` is what `ensure_session` takes: it describes the session anew. Without it a known session costs one read.
    """
    session = visible_sessions(principal).filter(sid=sid).first()
    if session is not None and not described:
        return session
    if session is None:
        if _belongs_to_others(principal, sid):
            raise UnknownSession(f"There is no session {sid[:200]!r} that this key may use.")
        bound = {name: getattr(principal.binding, name) for name in ("agent", "user", "project")}
        described = {**described, **{name: value for name, value in bound.items() if value}}
    return ensure_session(workspace=principal.workspace, sid=sid, **described)


def _belongs_to_others(principal: Principal, sid: str) -> bool:
    """Whether the session is there and out of reach; it is looked for once more, since it may have been made just now."""
    known = Session.objects.filter(workspace=principal.workspace, sid=sid).exists()
    return known and not visible_sessions(principal).filter(sid=sid).exists()


def describe_session(
    *,
    principal: Principal,
    sid: str,
    agent: str | None = None,
    user: str | None = None,
    project: str | None = None,
    title: str | None = None,
    metadata: dict[str, Any] | None = None,
    tool_capacity_bytes: int | None = None,
) -> Session:
    """Describe a session, made on its first use; a bound key describes only its own."""
    given: dict[str, Any] = {"agent": agent, "user": user, "project": project}
    for name, bound in (
        ("agent", principal.binding.agent),
        ("user", principal.binding.user),
        ("project", principal.binding.project),
    ):
        if bound and given[name] not in (None, bound):
            raise OutsideBinding(f"This key describes only sessions of the {name} {bound}.")
    with transaction.atomic():
        session = open_session(principal=principal, sid=sid, title=title, metadata=metadata, **given)
        if tool_capacity_bytes is not None:
            ToolSpace.objects.update_or_create(
                workspace=principal.workspace, session=session, defaults={"capacity_bytes": tool_capacity_bytes}
            )
    return session
