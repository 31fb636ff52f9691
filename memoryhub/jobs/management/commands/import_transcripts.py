"""Import Claude Code transcripts: usage into the ledger, conversation into the session tree."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand

from memoryhub.common import errors
from memoryhub.common.collecting import settled
from memoryhub.flows.import_transcripts import ImportResult, Progress, import_transcripts
from memoryhub.workspaces.queries import get_workspace


class Command(BaseCommand):
    help = "Import Claude Code transcripts (files, or folders such as ~/.claude/projects). Importing again changes nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", metavar="PATH")
        parser.add_argument("--workspace", default="default")
        parser.add_argument("--usage-only", action="store_true", help="Only the ledger; leave the session tree alone.")
        parser.add_argument("--json", action="store_true", help="Print the result as one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = get_workspace(options["workspace"])
            with settled(), progress_bar() as progress:
                result = import_transcripts(
                    workspace=workspace, paths=options["paths"], usage_only=options["usage_only"], progress=progress
                )
        except errors.HubError as error:
            self.stderr.write(error.detail)
            sys.exit(1)
        self._show(result, as_json=options["json"])
        if result.errors and not result.readable:
            sys.exit(1)

    def _show(self, result: ImportResult, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(result.as_json()))
            return
        for error in result.errors:
            self.stderr.write(f"{error['file']}:{error['line']}: {error['reason']}")
        self.stdout.write(
            f"{result.files} files ({result.unchanged_files} unchanged), {result.lines} lines: "
            f"{result.created} responses new, {result.updated} completed, {result.unchanged} known; "
            f"{result.events} events; {result.error_count} lines could not be read."
        )


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A bar on stderr where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
