"""`manage.py backup DEST`."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import errors
from memoryhub.jobs.backups import back_up


class Command(BaseCommand):
    help = "Write a consistent backup to a file or folder, while the hub runs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("dest", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            manifest = back_up(options["dest"].expanduser().resolve())
        except (errors.HubError, OSError) as error:
            raise CommandError(str(error)) from error
        rows = sum(manifest.row_counts.values())
        self.stdout.write(f"backed up {rows} rows, sha256 {manifest.sha256}")
