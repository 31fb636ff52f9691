"""`manage.py create_api_key --workspace default --name NAME`: the key is the last line of the output."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import clock, errors
from memoryhub.workspaces.principals import ALL_SCOPES, Binding
from memoryhub.workspaces.queries import get_workspace
from memoryhub.workspaces.services import create_api_key


class Command(BaseCommand):
    help = "Create an API key and print it once, as the last line. Without --scopes it may do everything but admin."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="default")
        parser.add_argument("--name", required=True)
        parser.add_argument("--scopes", nargs="+", metavar="SCOPE", help=f"some of: {' '.join(ALL_SCOPES)}")
        parser.add_argument("--expires-days", type=int)
        parser.add_argument("--agent", help="what the key reads and writes stays with this agent")
        parser.add_argument("--user", help="what the key reads and writes stays with this user")
        parser.add_argument("--project", help="what the key reads and writes stays with this project")

    def handle(self, *args: Any, **options: Any) -> None:
        days = options["expires_days"]
        scopes = options["scopes"] and [word for given in options["scopes"] for word in given.split(",") if word]
        try:
            _, token = create_api_key(
                workspace=get_workspace(options["workspace"]),
                name=options["name"],
                scopes=scopes,
                expires_at=clock.now() + timedelta(days=days) if days is not None else None,
                binding=Binding(options["agent"], options["user"], options["project"]),
                created_by="create_api_key",
            )
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(token)
