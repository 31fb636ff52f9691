"""`hub.context`: what a session has said, and its window at any node."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from memoryhub.client.http import Connection


class Context:
    """Events and windows of one session."""

    def __init__(self, connection: Connection, *, session: str | None) -> None:
        self._connection = connection
        self._session = session

    def describe(self, *, session: str | None = None, **fields: Any) -> dict[str, Any]:
        """Describe the session: agent, user, project, title, metadata."""
        return self._call("PUT", self._path(session), fields)

    def append(
        self, *events: Mapping[str, Any], session: str | None = None, expected_head: str | None = None
    ) -> dict[str, Any]:
        """Append events, all or nothing; repeating them (by their ids) changes nothing."""
        body: Any = [dict(event) for event in events]
        if expected_head is not None:
            body = {"events": body, "expected_head": expected_head}
        return self._call("POST", f"{self._path(session)}/events", body)

    def message(self, role: str, content: Any, **more: Any) -> dict[str, Any]:
        """Append one message."""
        return self.append({"kind": "message", "role": role, "content": content, **more})

    def window(
        self, at: str | None = None, *, session: str | None = None, format: str = "anthropic", **budget: int
    ) -> dict[str, Any]:
        """Return the exact sequence at an event (default: the head): `system` and `messages`, ready to send."""
        query = {"at": at, "format": format, **budget}
        reply = self._connection.request("GET", f"{self._path(session)}/context", query=query)
        return cast("dict[str, Any]", reply.body)

    def events(self, *, session: str | None = None, branch: str | None = None) -> list[dict[str, Any]]:
        """Return all events that the session can see, or the way to one event."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            query = {"cursor": cursor, "branch": branch, "limit": 200}
            page = self._connection.request("GET", f"{self._path(session)}/events", query=query).body
            found += cast("Sequence[dict[str, Any]]", page["items"])
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def rewind(self, to: str, *, session: str | None = None) -> dict[str, Any]:
        """Move the head to an event; nothing is deleted."""
        return self._call("POST", f"{self._path(session)}/rewind", {"to": to})

    def fork(self, new_session: str, *, at: str | None = None, session: str | None = None) -> dict[str, Any]:
        """Start a session that shares the past of an event."""
        body = {"session": new_session, **({"at": at} if at else {})}
        return self._call("POST", f"{self._path(session)}/fork", body)

    def _call(self, method: str, path: str, body: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", self._connection.request(method, path, body).body)

    def _path(self, session: str | None) -> str:
        name = session or self._session
        if not name:
            raise ValueError("name a session: MemoryHub(..., session=...) or session=... here")
        return f"/sessions/{quote(name, safe='')}"
