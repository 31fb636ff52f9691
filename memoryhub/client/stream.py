"""Hearing the hub's invalidations: one thread that follows the event stream and keeps the front cache honest.

The front cache is live only while the stream is. When the stream breaks, everything held is dropped; when it ends as
planned (after a minute), it is taken up again from the last event, and nothing is answered from the cache in between.
"""

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

from memoryhub.client.errors import HubError, HubUnreachable
from memoryhub.client.front import FrontCache
from memoryhub.client.http import Connection

SILENCE_SECONDS = 25.0  # the hub says something every ten
FIRST_PAUSE_SECONDS = 0.5
LAST_PAUSE_SECONDS = 30.0


class InvalidationListener:
    """Starts on first use and ends with the process, or by `close`."""

    def __init__(self, connection: Connection, front: FrontCache) -> None:
        self._connection = connection
        self._front = front
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._heard: int | None = None
        self._answer: http.client.HTTPResponse | None = None
        self.is_connected = threading.Event()

    def start(self) -> None:
        """Start listening, once."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="memoryhub-invalidations", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop listening; the front cache answers no more."""
        self._closed.set()
        self._front.is_live = False
        self._front.clear()

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._closed.is_set():
            try:
                ended_as_planned = self._follow()
                pause = FIRST_PAUSE_SECONDS
            except (HubError, HubUnreachable, OSError, http.client.HTTPException, ValueError):
                ended_as_planned = False
            self._front.is_live = False
            self.is_connected.clear()
            if not ended_as_planned:
                self._front.clear()
                self._heard = None
                self._closed.wait(pause)
                pause = min(pause * 2, LAST_PAUSE_SECONDS)

    def _follow(self) -> bool:
        """Follow one stream to its end and tell whether it ended as planned."""
        headers = {} if self._heard is None else {"Last-Event-ID": str(self._heard)}
        with self._connection.open_stream("/invalidations/stream", headers, SILENCE_SECONDS) as answer:
            owed = 0  # the epoch up to which events were missed and are still to come
            for name, number, data in _events(answer):
                if self._closed.is_set():
                    return True
                if name == "hello":
                    owed = number
                    self._heard = number if self._heard is None else self._heard
                elif name == "reset":
                    self._front.clear()
                    self._heard = number
                elif name == "invalidation":
                    self._front.announce(data.get("selector") or {})
                    self._heard = number
                if self._heard is not None and self._heard >= owed:
                    self._front.is_live = True
                    self.is_connected.set()
        return True


def _events(lines: Any) -> Iterator[tuple[str, int, dict[str, Any]]]:
    name, number, data = "", 0, ""
    for raw in lines:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if name:
                yield name, number, json.loads(data or "{}")
            name, data = "", ""
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("id:"):
            number = int(line[3:])
        elif line.startswith("data:"):
            data += line[5:].strip()
