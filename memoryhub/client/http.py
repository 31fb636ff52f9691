"""The client's HTTP core: JSON over one kept-alive connection per thread, explicit timeouts, problems as errors."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from memoryhub.client.errors import HubUnreachable, error_of

DEFAULT_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer. `body` is parsed JSON, None where there was none."""

    status: int
    body: Any
    headers: dict[str, str]


class Connection:
    """Talks to one hub with one key. Safe to share between threads."""

    def __init__(self, base_url: str, api_key: str, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the hub's address is like http://127.0.0.1:8000, not {base_url!r}")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}", "Accept": "application/json"}
        self._timeout_seconds = timeout_seconds
        self._local = threading.local()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> Reply:
        """One call to a path below /api/v1. Raises a HubError for a problem, HubUnreachable without an answer."""
        target = f"{self._prefix}/api/v1{path}"
        given = {name: value for name, value in (query or {}).items() if value is not None}
        if given:
            target += "?" + urlencode(given, doseq=True)
        data = None if body is None else _dump(body)
        sent = {
            **self._headers,
            **({"Content-Type": "application/json"} if data is not None else {}),
            **(headers or {}),
        }
        status, answer, answered = self._exchange(method, target, data, sent, timeout_seconds)
        parsed = _parse(answer)
        if status >= 400:
            problem = parsed if isinstance(parsed, dict) else {"detail": answer[:200].decode(errors="replace")}
            raise error_of(status, problem, answered)
        return Reply(status, parsed, answered)

    @contextmanager
    def open_stream(
        self, path: str, headers: Mapping[str, str], silence_seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        """Open a stream over a connection of its own; silence longer than this is a break."""
        connection = self._new_connection()
        connection.timeout = silence_seconds
        try:
            sent = {**self._headers, "Accept": "text/event-stream", **headers}
            connection.request("GET", f"{self._prefix}/api/v1{path}", headers=sent)
            answer = connection.getresponse()
            if answer.status >= 400:
                problem = _parse(answer.read())
                raise error_of(answer.status, problem if isinstance(problem, dict) else {}, dict(answer.getheaders()))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise HubUnreachable(f"the stream from {self._host} broke: {error}") from error
        finally:
            connection.close()

    def close(self) -> None:
        """Close this thread's connection."""
        kept = getattr(self._local, "kept", None)
        if kept is not None:
            kept.close()
            self._local.kept = None

    def _exchange(
        self, method: str, target: str, data: bytes | None, headers: dict[str, str], timeout_seconds: float | None
    ) -> tuple[int, bytes, dict[str, str]]:
        timeout = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        for attempt in (1, 2):
            kept: http.client.HTTPConnection | None = getattr(self._local, "kept", None)
            connection = kept or self._connect()
            connection.timeout = timeout
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            try:
                connection.request(method, target, body=data, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                self.close()
                # The hub closed an idle connection before it took the request: once more over a new one.
                if kept is None or attempt == 2:
                    raise HubUnreachable(f"{self._host} closed the connection: {error}") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise HubUnreachable(f"no answer from {self._host}: {error}") from error
        raise AssertionError("unreachable")

    def _connect(self) -> http.client.HTTPConnection:
        connection = self._new_connection()
        self._local.kept = connection
        return connection

    def _new_connection(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        return kind(self._host, self._port, timeout=self._timeout_seconds)


def _dump(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8: escape it, and let the hub say what is wrong with it.
        return json.dumps(body).encode()


def _parse(answer: bytes) -> Any:
    if not answer:
        return None
    try:
        return json.loads(answer)
    except ValueError:
        return None
