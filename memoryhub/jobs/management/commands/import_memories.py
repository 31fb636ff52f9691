"""`manage.py import_memories FILE`: memories of another system, or a folder of notes, into long-term memory."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import errors
from memoryhub.common.collecting import settled
from memoryhub.flows.import_memories import ImportResult, format_names, import_folder, import_stream
from memoryhub.interchange import markdown
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.principals import command_principal
from memoryhub.workspaces.queries import get_workspace

SHOWN_PROBLEMS = 20


class Command(BaseCommand):
    help = (
        "Import memories from a file, or a folder of Markdown notes. What can't be read is named with its line and "
        "skipped; running it again imports nothing twice."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a file, a folder of notes, or - for standard input")
        parser.add_argument("--format", default="auto", help=f"one of: {', '.join(format_names())}")
        parser.add_argument("--dry-run", action="store_true", help="only say what would happen")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument("--workspace", default="default")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = get_workspace(options["workspace"])
            writer = Writer.of(
                command_principal(workspace, "import_memories"), door="command", reason=f"import of {options['file']}"
            )
            with settled():
                result = self._import(writer, options)
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        except OSError as error:
            raise CommandError(f"{options['file']}: {error.strerror or error}") from error
        if options["json"]:
            self.stdout.write(json.dumps(result.as_dict(), ensure_ascii=False))
        else:
            self._tell(result)

    def _import(self, writer: Writer, options: dict[str, Any]) -> ImportResult:
        progress = self._progress if self.stderr.isatty() else None
        dry_run = options["dry_run"]
        path = Path(options["file"])
        if options["file"] == "-":
            from sys import stdin

            return import_stream(
                writer=writer, stream=stdin.buffer, format=options["format"], dry_run=dry_run, progress=progress
            )
        if path.is_dir():
            if options["format"] not in ("auto", markdown.NAME):
                raise CommandError("A folder holds Markdown notes; name a file for any other format.")
            return import_folder(writer=writer, folder=path, dry_run=dry_run, progress=progress)
        with path.open("rb") as stream:
            return import_stream(
                writer=writer,
                stream=stream,
                format=options["format"],
                file_name=path.name,
                dry_run=dry_run,
                progress=progress,
            )

    def _progress(self, read: int) -> None:
        self.stderr.write(f"\r{read:,} records", ending="")

    def _tell(self, result: ImportResult) -> None:
        would = "would be " if result.dry_run else ""
        self.stdout.write(
            f"{result.format}: {result.created} {would}created, {result.deduplicated} known already, "
            f"{result.conflicts} in conflict, {result.skipped_count} skipped"
        )
        for problem in [*result.conflict_items, *result.skipped][:SHOWN_PROBLEMS]:
            where = f"{problem['file']}, line {problem['line']}" if problem.get("file") else f"line {problem['line']}"
            self.stdout.write(f"  {where}: {problem['reason']}")
        more = result.conflicts + result.skipped_count - SHOWN_PROBLEMS
        if more > 0:
            self.stdout.write(f"  and {more} more; --json lists them")
        if result.change_set is not None:
            self.stdout.write(f"change set {result.change_set.public_id} (it can be reverted)")
