"""`manage.py create_workspace NAME`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import errors
from memoryhub.workspaces.services import create_workspace


class Command(BaseCommand):
    help = "Create a workspace."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--title", default="")
        parser.add_argument("--time-zone", default="UTC", help="such as Asia/Shanghai")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = create_workspace(name=options["name"], title=options["title"], time_zone=options["time_zone"])
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(f"created the workspace {workspace.name}")
