"""What the settings pages do to the workspace and its members in one step each, with its line in the log."""

from django.db import transaction
from django.utils.translation import gettext as _

from memoryhub.audit.services import record_event
from memoryhub.common import errors
from memoryhub.workspaces import services
from memoryhub.workspaces.models import Membership, User, Workspace
from memoryhub.workspaces.principals import Actor


def describe_workspace(*, workspace: Workspace, actor: Actor, title: str, time_zone: str) -> None:
    """Change the workspace's title and zone."""
    services.check_time_zone(time_zone)
    with transaction.atomic():
        workspace.title, workspace.time_zone = title.strip(), time_zone
        workspace.save(update_fields=["title", "time_zone"])
        detail = {"title": workspace.title, "time_zone": time_zone}
        record_event(
            workspace=workspace, actor=actor, action="describe_workspace", subject_type="workspace", detail=detail
        )


def add_member(*, workspace: Workspace, actor: Actor, name: str, role: str, password: str) -> None:
    """Give somebody a role here; a name that the hub does not know needs a first password."""
    with transaction.atomic():
        known = User.objects.filter(username=name).first()
        if known is None:
            if not password:
                raise errors.Invalid(_("Nobody has this name yet; give a first password to create the person."))
            services.create_user(name=name, password=password, workspace=workspace, role=role)
        elif Membership.objects.filter(workspace=workspace, user=known).exists():
            raise errors.Conflict(_("This person is a member already."))
        else:
            services.set_role(workspace=workspace, user=known, role=role)
        record_event(
            workspace=workspace,
            actor=actor,
            action="add_member",
            subject_type="user",
            subject_id=name,
            detail={"role": role},
        )
