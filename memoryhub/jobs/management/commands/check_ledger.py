"""`manage.py check_ledger [--rebuild]`: compare the daily sums with the records they are made of."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from memoryhub.common import errors
from memoryhub.prompt_cache.services.rollups import check_rollups, rebuild_rollups
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.queries import get_workspace

SHOWN = 20


class Command(BaseCommand):
    help = "Compute the ledger's daily sums anew and compare them with the stored ones; exits 1 where they differ."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", default="", help="All workspaces without it.")
        parser.add_argument("--rebuild", action="store_true", help="Store the computed sums.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            names = [options["workspace"]] if options["workspace"] else Workspace.objects.values_list("name", flat=True)
            differences = sum(self._check(get_workspace(name), rebuild=options["rebuild"]) for name in sorted(names))
        except errors.HubError as error:
            self.stderr.write(error.detail)
            sys.exit(1)
        if differences and not options["rebuild"]:
            sys.exit(1)

    def _check(self, workspace: Workspace, *, rebuild: bool) -> int:
        differences = check_rollups(workspace=workspace)
        self.stdout.write(f"{workspace.name}: {len(differences)} sums differ from the records")
        for difference in differences[:SHOWN]:
            self.stdout.write(f"  {difference}")
        if rebuild and differences:
            self.stdout.write(f"  {rebuild_rollups(workspace=workspace)} sums stored")
        return len(differences)
