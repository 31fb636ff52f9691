"""`manage.py restore SRC`."""

from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import errors
from memoryhub.jobs.backups import restore


class Command(BaseCommand):
    help = "Put a backup in the place of the current database (which is kept beside it). Stop the hub first."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("src", type=Path)
        parser.add_argument("--force", action="store_true", help="even though a worker seems to run")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            counts = restore(options["src"].expanduser().resolve(), force=options["force"])
        except (errors.HubError, OSError) as error:
            raise CommandError(str(error)) from error
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(f"restored {sum(counts.values())} rows" if counts else "restored")
