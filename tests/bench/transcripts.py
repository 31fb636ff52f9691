"""Transcripts for benchmarks: sessions with tool loops, streams of several lines per response, and long tool results."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 10, 10, tzinfo=UTC)
MODELS = ("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-4-5")
_SENTENCE = "the cache holds a prefix of every request that an agent sends and reads it back for a tenth of the price"
_WORDS = _SENTENCE.split()


class SessionWriter:
    """Writes one session's lines; deterministic for its number."""

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.session = f"{number:08x}-bench-session"
        self.cwd = f"/home/ana/projects/project-{number % 40}"
        self.at = START + timedelta(minutes=37 * number)
        self.parent: str | None = None
        self.turn = 0
        self.prompt = 20_000

    def text(self, size: int) -> str:
        words = self.random.choices(_WORDS, k=max(1, size // 6))
        return " ".join(words)

    def turn_lines(self, size: int = 3_300) -> list[str]:
        """A user or tool line, then one response in two lines: a placeholder and the final numbers."""
        self.turn += 1
        lines = [self._line("user", {"role": "user", "content": self._result(size)})]
        usage = self._usage()
        message = {
            "id": f"msg_{self.session[:8]}_{self.turn:06d}",
            "type": "message",
            "role": "assistant",
            "model": MODELS[self.turn % 3 if self.turn % 7 == 0 else 0],
        }
        thinking = [{"type": "text", "text": self.text(size // 4)}]
        call = [{"type": "tool_use", "id": f"toolu_{self.turn}", "name": "Read", "input": {"path": self.text(80)}}]
        for content, output in ((thinking, 1), (call, usage["output_tokens"])):
            body = {**message, "content": content, "stop_reason": None, "usage": {**usage, "output_tokens": output}}
            lines.append(self._line("assistant", body, requestId=f"req_{self.turn}"))
        return lines

    def _result(self, size: int) -> list[dict[str, object]]:
        return [{"type": "tool_result", "tool_use_id": f"toolu_{self.turn - 1}", "content": self.text(2 * size)}]

    def _usage(self) -> dict[str, object]:
        written = self.random.randrange(200, 4_000)
        read, self.prompt = self.prompt, self.prompt + written
        return {
            "input_tokens": self.random.randrange(3, 40),
            "output_tokens": self.random.randrange(20, 3_000),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written},
            "service_tier": "standard",
            "speed": "standard",
            "inference_geo": "not_available",
        }

    def _line(self, kind: str, message: dict[str, object], **more: object) -> str:
        self.at += timedelta(seconds=self.random.uniform(1, 20))
        uuid = f"{self.session[:8]}-{self.random.getrandbits(64):016x}"
        entry = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.300",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            **more,
            "uuid": uuid,
            "timestamp": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.parent = uuid
        return json.dumps(entry, separators=(",", ":"))


def write_transcripts(folder: Path, *, megabytes: int, files: int) -> list[SessionWriter]:
    """Fill a projects folder; returns the writers, which can go on writing."""
    writers = [SessionWriter(number) for number in range(files)]
    share = megabytes * 1_000_000 // files
    for writer in writers:
        path = transcript_path(folder, writer)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as file:
            while file.tell() < share:
                file.write("\n".join(writer.turn_lines()) + "\n")
    return writers


def append_lines(folder: Path, writer: SessionWriter, *, kilobytes: int) -> None:
    """Let a session go on for about so many kilobytes."""
    with transcript_path(folder, writer).open("a") as file:
        written = 0
        while written < kilobytes * 1000:
            text = "\n".join(writer.turn_lines()) + "\n"
            written += file.write(text)


def transcript_path(folder: Path, writer: SessionWriter) -> Path:
    return folder / writer.cwd.replace("/", "-") / f"{writer.session}.jsonl"
