"""Changes to a workspace and its members, each with its line in the log."""

from django.db import transaction

from memoryhub.audit.services import record_event
from memoryhub.workspaces import services
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


def describe_workspace(*, workspace: Workspace, actor: Actor, title: str, time_zone: str) -> None:
    """Change the workspace's title and zone, and say so in the log."""
    with transaction.atomic():
        services.describe_workspace(workspace=workspace, title=title, time_zone=time_zone)
        record_event(
            workspace=workspace,
            actor=actor,
            action="describe_workspace",
            subject_type="workspace",
            detail={"title": workspace.title, "time_zone": time_zone},
        )


def add_member(*, workspace: Workspace, actor: Actor, name: str, role: str, password: str) -> None:
    """Give somebody a role here, and say so in the log; a new name needs a first password."""
    with transaction.atomic():
        services.add_member(workspace=workspace, name=name, role=role, password=password)
        record_event(
            workspace=workspace,
            actor=actor,
            action="add_member",
            subject_type="user",
            subject_id=name,
            detail={"role": role},
        )
