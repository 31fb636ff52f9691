"""The story as it stands in fixtures/demo: memories as Markdown lists, everything else as JSON."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memoryhub.long_term_memory.domain.scoping import ScopeNames

_HEADING = re.compile(r"^## (?P<agent>[^/]+) / (?P<user>[^/]+) / (?P<project>[^/]+) / (?P<kind>\w+)$")
_LINE = re.compile(r"^- (?P<importance>[\d.]+) \| (?P<tags>[^|]*) \| (?P<text>.+)$")


class BadStory(ValueError):
    """A file of the story can't be read; the message names the place."""


@dataclass(frozen=True, slots=True)
class StoryMemory:
    """One line of a memory file. `early` ones stand on the first days and nobody reads them again."""

    scope: ScopeNames
    kind: str
    importance: float
    tags: tuple[str, ...]
    text: str
    pinned: bool = False
    early: bool = False


def read_memories(folder: Path) -> list[StoryMemory]:
    """Return the memories of all Markdown files below the folder, in order."""
    found: list[StoryMemory] = []
    for file in sorted(folder.glob("*.md")):
        found.extend(_memories_of(file))
    return found


def _memories_of(file: Path) -> Iterator[StoryMemory]:
    scope: ScopeNames | None = None
    kind = ""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if heading := _HEADING.match(line):
            names = {name: heading[name] for name in ("agent", "user", "project") if heading[name] != "-"}
            scope, kind = ScopeNames(**names), heading["kind"]
        elif line.startswith("- "):
            entry = _LINE.match(line)
            if entry is None or scope is None:
                raise BadStory(f"{file.name}:{number} is not: - importance | tags | text")
            words = [word.strip() for word in entry["tags"].split(",")]
            yield StoryMemory(
                scope=scope,
                kind=kind,
                importance=float(entry["importance"]),
                tags=tuple(word for word in words if not word.startswith("!")),
                text=entry["text"],
                pinned="!pin" in words,
                early="!old" in words,
            )


def read_json(file: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(file.read_text(encoding="utf-8"))


def read_json_lines(file: Path) -> list[dict[str, Any]]:
    """Return one object a line."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


def read_conversations(folder: Path) -> list[dict[str, Any]]:
    """Return the conversations that are told turn by turn."""
    return [read_json(file) for file in sorted(folder.glob("*.json"))]
