"""Anthropic's memory tool (`memory_20250818`), kept in the hub instead of in a folder.

    from anthropic import Anthropic
    from memoryhub.client import MemoryHub, MemoryTool

    tool = MemoryTool(MemoryHub("http://127.0.0.1:8000", "mh_..."))
    runner = Anthropic().beta.messages.tool_runner(model=..., max_tokens=1024, tools=[tool], messages=[...])

Each file is an ordinary memory with a path: people see, search and undo it on the hub's pages, with every version.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from memoryhub.client import errors
from memoryhub.client.memory_files import HubFile, MemoryFiles

ROOT = "/memories"
MAX_LINES = 999_999
LISTED_LEVELS = 2
SNIPPET_LINES = 2  # shown before and after an edit
MAX_TRIES = 50  # of one edit while others edit the same file
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
T = TypeVar("T")


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool over a hub. `agent`, `user` and `project` say whose memory it is; the key's binding fills in."""

    def __init__(
        self,
        hub: Any,
        *,
        agent: str | None = None,
        user: str | None = None,
        project: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._files = MemoryFiles(hub.connection, agent=agent, user=user, project=project)

    def call(self, input: object) -> Any:
        """Run one command as the model sent it; whatever is wrong with it comes back as a ToolError."""
        command = input.get("command") if isinstance(input, dict) else getattr(input, "command", None)
        if command not in COMMANDS:
            raise ToolError(f"Error: Unknown command {command!r}. The commands are {', '.join(COMMANDS)}.")
        try:
            return super().call(input)
        except errors.HubUnreachable as error:
            raise ToolError("Error: The memory is out of reach at the moment.") from error
        except errors.HubError as error:
            raise ToolError(f"Error: {error.detail}") from error

    def view(self, command: Any) -> str:
        given, path = _path(command, "path")
        found = None if path == ROOT else self._files.read(path)
        if found is not None:
            return _numbered_file(given, found.content, getattr(command, "view_range", None))
        below = self._files.list_below(path)
        if not below and path != ROOT:
            raise ToolError(f"The path {given} does not exist. Please provide a valid path.")
        return _listing(path, below)

    def create(self, command: Any) -> str:
        given, path = _path(command, "path")
        text = _text(command, "file_text")
        _refuse_root(path, "created")
        try:
            self._files.create(path, text)
        except errors.Conflict as error:
            if error.slug == "path-taken":
                raise ToolError(f"Error: File {given} already exists") from error
            raise
        return f"File created successfully at: {given}"

    def str_replace(self, command: Any) -> str:
        given, path = _path(command, "path")
        old, new = _text(command, "old_str"), _text(command, "new_str", default="")
        return self._edit(given, path, lambda content: _replace(given, content, old, new))

    def insert(self, command: Any) -> str:
        given, path = _path(command, "path")
        at, text = getattr(command, "insert_line", None), _text(command, "insert_text")
        return self._edit(given, path, lambda content: _insert(given, content, at, text))

    def delete(self, command: Any) -> str:
        given, path = _path(command, "path")
        _refuse_root(path, "deleted")
        try:
            self._files.delete(path)
        except errors.NotFound as error:
            raise ToolError(f"Error: The path {given} does not exist") from error
        return f"Successfully deleted {given}"

    def rename(self, command: Any) -> str:
        given_old, old = _path(command, "old_path")
        given_new, new = _path(command, "new_path")
        _refuse_root(old, "renamed")
        if new.startswith(f"{old}/"):
            raise ToolError(f"Error: {given_old} can't be moved into itself")
        try:
            if new == ROOT:
                raise ToolError(f"Error: The destination {given_new} already exists")
            self._files.rename(old, new)
        except errors.NotFound as error:
            raise ToolError(f"Error: The path {given_old} does not exist") from error
        except errors.Conflict as error:
            if error.slug == "path-taken":
                raise ToolError(f"Error: The destination {given_new} already exists") from error
            raise
        return f"Successfully renamed {given_old} to {given_new}"

    def clear_all_memory(self) -> str:
        """Forget every file; all of them can be brought back on the hub's pages."""
        try:
            self._files.delete(ROOT)
        except errors.NotFound:
            return "There was nothing to clear"
        return "All memory cleared"

    def _edit(self, given: str, path: str, change: Callable[[str], tuple[str, str]]) -> str:
        """Read, change and write a file as one step: when somebody else wrote meanwhile, begin again with theirs."""
        for _ in range(MAX_TRIES):
            found = None if path == ROOT else self._files.read(path)
            if found is None:
                raise ToolError(f"Error: The path {given} does not exist. Please provide a valid path.")
            content, answer = change(found.content)
            try:
                self._files.write(found, content)
            except errors.PreconditionFailed:
                continue
            return answer
        raise ToolError(f"Error: {given} is being changed by others all the time. Try again later.")


def _path(command: Any, name: str) -> tuple[str, str]:
    """A path as it was given and as it is meant: below the root, without ways around it."""
    given = getattr(command, name, None)
    if not isinstance(given, str) or not given:
        raise ToolError(f"Error: `{name}` is missing")
    plain = given
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    segments = [segment for segment in given.split("/") if segment]
    tricky = {"..", "."} & {segment.strip() for segment in re.split(r"[/\\]", plain)}
    if tricky or "\\" in plain or _CONTROL.search(plain):
        raise ToolError(f"Error: The path {given!r} is not allowed. Use a plain path below {ROOT}.")
    if not given.startswith("/") or segments[:1] != [ROOT[1:]]:
        raise ToolError(f"Error: The path {given} is not below {ROOT}")
    return given, unicodedata.normalize("NFC", "/" + "/".join(segments))


def _text(command: Any, name: str, *, default: str | None = None) -> str:
    value = getattr(command, name, None)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ToolError(f"Error: `{name}` is missing")
    return value


def _refuse_root(path: str, done: str) -> None:
    if path == ROOT:
        raise ToolError(f"Error: The {ROOT} directory itself can't be {done}")


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _numbered_file(given: str, content: str, view_range: Any) -> str:
    lines = content.split("\n")
    if len(lines) > MAX_LINES:
        raise ToolError(f"File {given} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        if not isinstance(view_range, list) or len(view_range) != 2 or not all(type(n) is int for n in view_range):
            raise ToolError(f"Error: Invalid `view_range` parameter: {view_range}. It should be [start, end].")
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
        if first > len(lines) or last < first:
            raise ToolError(
                f"Error: Invalid `view_range` parameter: {view_range}. "
                f"It should be within the range of lines of the file: [1, {len(lines)}]"
            )
    return f"Here's the content of {given} with line numbers:\n{_numbered(lines[first - 1 : last], first)}"


def _replace(given: str, content: str, old: str, new: str) -> tuple[str, str]:
    """The edited content and what to say about it."""
    if not old or old not in content:
        raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {given}.")
    places = _line_numbers(content, old)
    if len(places) > 1:
        raise ToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, places))}. Please ensure it is unique"
        )
    edited = content.replace(old, new, 1)
    at = places[0] - 1
    start, end = max(0, at - SNIPPET_LINES), at + new.count("\n") + SNIPPET_LINES + 1
    snippet = _numbered(edited.split("\n")[start:end], start + 1)
    return edited, (
        f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
    )


def _line_numbers(content: str, old: str) -> list[int]:
    """The line on which each occurrence starts, overlapping ones included."""
    found, at = [], content.find(old)
    while at != -1:
        found.append(content.count("\n", 0, at) + 1)
        at = content.find(old, at + 1)
    return found


def _insert(given: str, content: str, at: Any, text: str) -> tuple[str, str]:
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if type(at) is not int or not 0 <= at <= len(lines):
        raise ToolError(
            f"Error: Invalid `insert_line` parameter: {at}. "
            f"It should be within the range of lines of the file: [0, {len(lines)}]"
        )
    lines.insert(at, text.removesuffix("\n"))
    return "\n".join(lines) + "\n", f"The file {given} has been edited."


def _listing(path: str, below: list[HubFile]) -> str:
    """Sizes and paths two levels deep; a directory's size is that of everything in it."""
    sizes: dict[str, int] = {path: 0}
    for file in below:
        sizes[path] += file.size_bytes
        segments = file.path[len(path) + 1 :].split("/")
        for depth in range(1, min(len(segments), LISTED_LEVELS) + 1):
            shown = segments[:depth]
            if any(segment.startswith(".") or segment == "node_modules" for segment in shown):
                break
            name = f"{path}/{'/'.join(shown)}" + ("/" if depth < len(segments) else "")
            sizes[name] = sizes.get(name, 0) + file.size_bytes
    lines = "\n".join(f"{_size(size)}\t{name}" for name, size in sizes.items())
    return (
        f"Here're the files and directories up to 2 levels deep in {path}, "
        f"excluding hidden items and node_modules:\n{lines}"
    )


def _size(size_bytes: int) -> str:
    """As `du -h` writes it: 0B, 12B, 1.5K, 2M."""
    size, unit = float(size_bytes), "B"
    for larger in ("K", "M", "G"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit
