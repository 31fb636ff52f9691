"""Ready commands for this server: the same memory from a shell and from Python."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext as _

from memoryhub.long_term_memory.models import Memory


@dataclass(frozen=True, slots=True)
class Snippet:
    """A command with its title."""

    title: str
    code: str


def remember_with_curl(request: HttpRequest) -> str:
    """Return a command that stores a first memory."""
    body = {"content": "Prefers small pull requests.", "scope": {"agent": "reviewer", "user": "ana"}, "tags": ["style"]}
    return _curl(request, "POST", "/memories", body)


def snippets_of(request: HttpRequest, memory: Memory) -> list[Snippet]:
    """Return commands that read and change this memory."""
    path = f"/memories/{memory.public_id}"
    etag = ("-H", f'If-Match: "v{memory.version}"')
    scope = {name: value for name, value in memory.scope.as_dict().items() if value}
    python = "\n".join(
        (
            "import os",
            "from memoryhub.client import MemoryHub",
            "",
            f'hub = MemoryHub({request.build_absolute_uri("/").rstrip("/")!r}, os.environ["MEMORYHUB_KEY"])',
            f"memory = hub.memory.get({memory.public_id!r})",
            f'hub.memory.update({memory.public_id!r}, importance={memory.importance:g}, version=memory["version"])',
            f"hub.memory.search({_short(memory)!r}, scope={scope!r})",
        )
    )
    return [
        Snippet(_("Read it with curl"), _curl(request, "GET", path)),
        Snippet(_("Change it with curl"), _curl(request, "PATCH", path, {"importance": memory.importance}, etag)),
        Snippet(_("In Python"), python),
    ]


def _curl(
    request: HttpRequest, method: str, path: str, body: dict[str, Any] | None = None, extra: tuple[str, ...] = ()
) -> str:
    lines = [
        f"curl{'' if method == 'GET' else f' -X {method}'} {shlex.quote(request.build_absolute_uri('/api/v1' + path))}"
    ]
    lines.append('-H "Authorization: Bearer $MEMORYHUB_KEY"')
    lines += [f"{flag} {shlex.quote(value)}" for flag, value in zip(extra[::2], extra[1::2], strict=True)]
    if body is not None:
        lines += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}"]
    return " \\\n  ".join(lines)


def _short(memory: Memory) -> str:
    return " ".join(memory.content.split()[:8])[:80]
