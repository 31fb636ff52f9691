"""`manage.py create_user NAME --role ROLE`."""

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub import env
from memoryhub.common import errors
from memoryhub.workspaces.models import Role
from memoryhub.workspaces.queries import get_workspace
from memoryhub.workspaces.services import create_user


class Command(BaseCommand):
    help = (
        "Create a person. The password comes from MEMORYHUB_USER_PASSWORD, or is made and shown once as the last line."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=Role.values)
        parser.add_argument("--workspace", default="default")
        parser.add_argument("--email", default="")

    def handle(self, *args: Any, **options: Any) -> None:
        chosen = env.secret("MEMORYHUB_USER_PASSWORD")
        password = chosen or secrets.token_urlsafe(12)
        try:
            workspace = get_workspace(options["workspace"])
            create_user(
                name=options["name"],
                password=password,
                workspace=workspace,
                role=options["role"],
                email=options["email"],
            )
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"created {options['name']} as {options['role']} of {workspace.name}")
        if not chosen:
            self.stdout.write(password)
