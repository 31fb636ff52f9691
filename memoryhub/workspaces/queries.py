"""Reads about who: workspaces, members, keys, agents, sessions; and who a credential belongs to."""

from django.conf import settings
from django.db.models import F

from memoryhub.common import clock, errors
from memoryhub.workspaces import keys
from memoryhub.workspaces.models import Agent, ApiKey, Membership, User, Workspace
from memoryhub.workspaces.principals import ROLE_SCOPES, Binding, Principal


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


def list_members(workspace: Workspace) -> list[Membership]:
    """Return the workspace's members with their users, by name."""
    return list(Membership.objects.filter(workspace=workspace).select_related("user").order_by("user__username"))


def list_api_keys(workspace: Workspace) -> list[ApiKey]:
    """Return the workspace's keys, the newest first, revoked ones included."""
    return list(ApiKey.objects.filter(workspace=workspace).order_by("-created_at", "-id"))


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
