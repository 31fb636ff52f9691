"""Transcript lines and files for tests."""

import json
from pathlib import Path
from typing import Any

from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.queries import build_report
from memoryhub.workspaces.models import Workspace

M = 1_000_000


def usage_of(
    input: int = 0, output: int = 0, write: int = 0, read: int = 0, short: int = 0, long: int = 0, **more: Any
) -> dict[str, Any]:
    return {
        "input_tokens": input,
        "output_tokens": output,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
        **more,
    }


def answer(
    message_id: str, usage: dict[str, Any], *, model: str = "claude-opus-5-5", message: Any = None, **changes: Any
) -> dict[str, Any]:
    """An assistant line."""
    entry = {
        "type": "assistant",
        "uuid": f"u-{message_id}-{usage.get('output_tokens')}",
        "parentUuid": None,
        "timestamp": "2026-11-10T20:00:00.000Z",
        "sessionId": "s1",
        "version": "2.1.300",
        "cwd": "/w/web",
        "isSidechain": False,
        "requestId": f"r-{message_id}",
        "message": {
            "type": "message",
            "role": "assistant",
            "id": message_id,
            "model": model,
            "content": [{"type": "text", "text": "x"}],
            "stop_reason": "end_turn",
            "usage": usage,
            **(message or {}),
        },
    }
    return {**entry, **changes}


def write_file(path: Path, *lines: dict[str, Any] | str | bytes) -> Path:
    """A transcript; a string or bytes stand in it as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(as_bytes(line) + b"\n" for line in lines))
    return path


def append(path: Path, *lines: dict[str, Any] | str | bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(as_bytes(line) + b"\n" for line in lines))


def as_bytes(line: dict[str, Any] | str | bytes) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))).encode()


def cost_of(workspace: Workspace) -> str:
    """The workspace's whole cost in USD, shortest form."""
    return format(build_report(workspace).totals.cost_usd.normalize(), "f")


def ledger(workspace: Workspace) -> list[dict[str, Any]]:
    """Everything the ledger says, without when it was written."""
    rows = UsageRecord.objects.of(workspace).order_by("message_id", "part").values()
    return [
        {k: v for k, v in row.items() if k not in ("id", "workspace_id", "created_at", "updated_at")} for row in rows
    ]
