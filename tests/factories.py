"""Small makers of rows. Override only what a test is about."""

from datetime import UTC, datetime

from memoryhub.workspaces.models import Membership, User, Workspace

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def make_workspace(name: str = "home", *, time_zone: str = "UTC") -> Workspace:
    return Workspace.objects.create(name=name, time_zone=time_zone, created_at=NOON)


def make_user(name: str = "ana", *, workspace: Workspace, role: str = "viewer") -> User:
    user = User(username=f"{name}-of-{workspace.name}")
    user.set_unusable_password()
    user.save()
    Membership.objects.create(workspace=workspace, user=user, role=role, created_at=NOON)
    return user
