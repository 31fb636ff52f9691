"""The first start of a hub: a workspace, an admin and a key, each secret shown once."""

import secrets
from collections.abc import Iterator

from django.db import transaction

from memoryhub import env
from memoryhub.workspaces import services
from memoryhub.workspaces.models import Role, Workspace

FIRST_WORKSPACE = "default"
FIRST_ADMIN = "admin"


def ensure() -> Iterator[str]:
    """Make what a new hub needs and yield the lines that tell its owner; an existing hub yields nothing."""
    if Workspace.objects.exists():
        return
    chosen = env.secret("MEMORYHUB_ADMIN_PASSWORD")
    password = chosen or secrets.token_urlsafe(12)
    with transaction.atomic():
        workspace = services.create_workspace(name=FIRST_WORKSPACE)
        services.create_user(name=FIRST_ADMIN, password=password, workspace=workspace, role=Role.ADMIN)
        _, token = services.create_api_key(workspace=workspace, name="first key", created_by="first start")
    yield "First start. Keep these, they are shown only now:"
    yield f"  sign in as   {FIRST_ADMIN}"
    yield f"  password     {'as set by MEMORYHUB_ADMIN_PASSWORD' if chosen else password}"
    yield f"  API key      {token}"
