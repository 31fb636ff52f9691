"""Reading usage out of a response while it passes by: whole JSON bodies, and server-sent events in pieces of any size.

Counters in a stream are cumulative, so the larger number wins field by field; nothing is added up.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from memoryhub.prompt_cache.domain.blocks import Json

LONGEST_LINE_BYTES = 1024 * 1024  # events with usage are small; a longer line is text that is not needed
_TELLING_EVENTS = (b'"message_start"', b'"message_delta"', b'"message_stop"')
_TYPE_LIES_WITHIN = 200  # bytes from the line's beginning


class ResponseReader:
    """Collects message id, model, usage and diagnostics of one response."""

    def __init__(self, *, is_stream: bool) -> None:
        self.is_stream = is_stream
        self.message_id = ""
        self.model = ""
        self.usage: dict[str, Any] = {}
        self.diagnostics: Json = None
        self.diagnostics_given = False
        self.complete = False
        self._rest = b""
        self._skipping = False

    @property
    def knows_usage(self) -> bool:
        return bool(self.message_id and self.usage)

    def feed(self, data: bytes) -> None:
        """Take the next bytes of a stream."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif line.startswith(b"data:"):
                self._read_data(line)
        if len(self._rest) > LONGEST_LINE_BYTES:
            self._rest, self._skipping = b"", True

    def read_body(self, data: bytes) -> None:
        """Take a whole response body."""
        message = _parse(data)
        if isinstance(message, dict) and message.get("type") == "message":
            self._read_message(message)
            self.complete = True

    def _read_data(self, line: bytes) -> None:
        if not any(name in line[:_TYPE_LIES_WITHIN] or name in line[-_TYPE_LIES_WITHIN:] for name in _TELLING_EVENTS):
            return
        event = _parse(line[5:])
        if not isinstance(event, dict):
            return
        if event.get("type") == "message_start" and isinstance(event.get("message"), dict):
            self._read_message(event["message"])
        elif event.get("type") == "message_delta":
            self._read_usage(event.get("usage"))
        elif event.get("type") == "message_stop":
            self.complete = True

    def _read_message(self, message: Json) -> None:
        self.message_id = _word(message.get("id"))
        self.model = _word(message.get("model"))
        if "diagnostics" in message:
            self.diagnostics_given = True
            self.diagnostics = message["diagnostics"] if isinstance(message["diagnostics"], dict) else None
        self._read_usage(message.get("usage"))

    def _read_usage(self, usage: Json) -> None:
        if isinstance(usage, dict):
            self.usage = larger_counters(self.usage, usage)


def larger_counters(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the later usage over the earlier, the larger number of each counter."""
    merged = dict(before)
    for name, value in after.items():
        known = merged.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            merged[name] = larger_counters(known, value)
        elif type(known) is int and type(value) is int:
            merged[name] = max(known, value)
        elif value is not None or name not in merged:
            merged[name] = value
    return merged


def _parse(data: bytes) -> Json:
    try:
        return orjson.loads(data)
    except ValueError:
        try:
            return json.loads(data)  # integers beyond 64 bits
        except (ValueError, RecursionError):
            return None


def _word(value: Json) -> str:
    return value[:200] if isinstance(value, str) else ""
