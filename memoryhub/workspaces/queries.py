"""Reads about who: workspaces, members, keys, agents, sessions; and who a credential belongs to."""

from datetime import datetime

from django.conf import settings
from django.db.models import F, Max, Q, QuerySet

from memoryhub.common import clock, errors
from memoryhub.common.keyset import count_capped
from memoryhub.workspaces import keys
from memoryhub.workspaces.models import Agent, ApiKey, Membership, Session, User, Workspace
from memoryhub.workspaces.principals import ROLE_SCOPES, Binding, Principal

NEWEST_SEARCHED = 2000


class UnknownWorkspace(errors.NotFound):
    slug = "unknown-workspace"
    title = "Unknown workspace"


def get_workspace(name: str) -> Workspace:
    """Return the workspace of that name."""
    try:
        return Workspace.objects.get(name=name)
    except Workspace.DoesNotExist as error:
        raise UnknownWorkspace(f"There is no workspace named {name}.") from error


def list_workspaces_of(user: User) -> list[Workspace]:
    """Return the workspaces that a person may enter, by name."""
    return list(Workspace.objects.filter(memberships__user=user).order_by("name"))


MEMBERS_ORDER = [("username", "asc"), ("id", "asc")]
KEYS_ORDER = [("created_at", "desc"), ("id", "desc")]


def list_members(workspace: Workspace) -> QuerySet[Membership]:
    """Return the workspace's members with their users, each with its `username`; cut them with MEMBERS_ORDER."""
    return Membership.objects.filter(workspace=workspace).select_related("user").annotate(username=F("user__username"))


def list_api_keys(workspace: Workspace) -> QuerySet[ApiKey]:
    """Return the workspace's keys, revoked ones included; cut them with KEYS_ORDER, the newest first."""
    return ApiKey.objects.filter(workspace=workspace)


def list_agent_names(workspace: Workspace) -> list[str]:
    """Return the names of the workspace's agents."""
    return list(Agent.objects.filter(workspace=workspace).order_by("name").values_list("name", flat=True))


def find_principal_by_token(token: str) -> tuple[Principal, int] | None:
    """Return whoever holds this token with the key's row id, or None for a wrong, expired or revoked one."""
    lookup = keys.lookup_of(token)
    if lookup is None:
        return None
    key = ApiKey.objects.usable(clock.now()).select_related("workspace").filter(lookup=lookup).first()
    if key is None or not keys.proves(token, key.digest, settings.KEY_PEPPER):
        return None
    binding = Binding(key.agent or None, key.user or None, key.project or None)
    principal = Principal(key.workspace, "key", key.lookup, key.name, frozenset(key.scopes), binding=binding)
    return principal, key.pk


def find_principal_of_user(user: User, workspace_id: int | None) -> Principal | None:
    """Return a person in the chosen workspace, else in the one they last entered; None where they belong to none."""
    last_entered = F("entered_at").desc(nulls_last=True)
    memberships = (
        Membership.objects.filter(user=user).select_related("workspace").order_by(last_entered, "workspace__name")
    )
    membership = memberships.filter(workspace_id=workspace_id).first() if workspace_id else None
    membership = membership or memberships.first()
    if membership is None:
        return None
    return Principal(
        membership.workspace, "user", str(user.pk), user.username, ROLE_SCOPES[membership.role], role=membership.role
    )


def last_key_use_at(workspace: Workspace) -> datetime | None:
    """Return when any of the workspace's keys was last used (noted within half a minute)."""
    used: datetime | None = ApiKey.objects.filter(workspace=workspace).aggregate(at=Max("last_used_at"))["at"]
    return used


def last_session_activity_at(workspace: Workspace) -> datetime | None:
    """Return when any session was last active."""
    recent = Session.objects.filter(workspace=workspace).order_by("-last_active_at", "-id")
    return recent.values_list("last_active_at", flat=True).first()


def count_sessions(workspace: Workspace, *, active_since: datetime | None = None) -> int:
    """Return how many sessions there are, or were active since, counted up to the cap."""
    rows = Session.objects.filter(workspace=workspace)
    return count_capped(rows.filter(last_active_at__gte=active_since) if active_since else rows)


def find_sessions(workspace: Workspace, typed: str, *, limit: int) -> list[Session]:
    """Return the last active sessions whose id, title or project holds what was typed, among the newest 2,000."""
    rows = Session.objects.filter(workspace=workspace)
    newest = rows.order_by("-last_active_at", "-id").values("pk")[:NEWEST_SEARCHED]
    words = Q(sid__icontains=typed) | Q(title__icontains=typed) | Q(project__icontains=typed)
    return list(Session.objects.filter(words, pk__in=newest).order_by("-last_active_at", "-id")[:limit])
