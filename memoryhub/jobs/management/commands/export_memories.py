"""`manage.py export_memories`: long-term memory out, in any format the hub reads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memoryhub.common import errors
from memoryhub.flows.export_memories import export_folder, export_memories, find_format
from memoryhub.interchange import markdown
from memoryhub.interchange.formats import DEFAULT_FORMAT, FORMATS
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.workspaces.queries import get_workspace


class Command(BaseCommand):
    help = "Write memories to standard output or a file; Markdown notes also into a folder, one file each."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", metavar="FILE", help="the same as --output; - is standard output")
        parser.add_argument("--format", default=DEFAULT_FORMAT, help=f"one of: {', '.join(FORMATS)}")
        parser.add_argument("--output", metavar="FILE", help="a file, or with --format markdown an existing folder")
        parser.add_argument("--workspace", default="default")
        parser.add_argument("--agent")
        parser.add_argument("--user")
        parser.add_argument("--project")
        parser.add_argument("--tag", action="append", default=[], help="only memories with this tag (repeatable)")
        parser.add_argument("--versions", action="store_true", help="with earlier versions (memoryhub format)")

    def handle(self, *args: Any, **options: Any) -> None:
        scope = ScopeNames(options["agent"] or None, options["user"] or None, options["project"] or None)
        wanted = MemoryFilter(scope=scope, tags=options["tag"])
        name = options["output"] or options["file"]
        target = Path(name) if name and name != "-" else None
        try:
            workspace = get_workspace(options["workspace"])
            format = find_format(options["format"])
            if target is not None and target.is_dir() and format.name == markdown.NAME:
                count = export_folder(workspace=workspace, folder=target, wanted=wanted)
                self.stderr.write(f"{count} notes written to {target}")
                return
            pieces = export_memories(
                workspace=workspace, format=format, wanted=wanted, with_versions=options["versions"]
            )
            if target is None:
                for piece in pieces:
                    self.stdout.write(piece, ending="")
                return
            self._write(target, pieces)
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        except OSError as error:
            raise CommandError(f"{name}: {error.strerror or error}") from error

    def _write(self, target: Path, pieces: Iterable[str]) -> None:
        """All or nothing: an export that fails leaves what was there before."""
        part = target.with_name(f".{target.name}.part")
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
