"""`hub.memory`: what outlives the session."""

from collections.abc import Mapping
from typing import Any, cast

from memoryhub.client.http import Connection


class LongTermMemory:
    """Memories of the key's workspace."""

    def __init__(self, connection: Connection, *, session: str | None) -> None:
        self._connection = connection
        self._session = session

    def remember(self, content: str, *, scope: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Remember a text; the same text in the same scope is stored once."""
        body = {"content": content, "session": self._session, "scope": dict(scope) if scope else None, **fields}
        sent = {name: value for name, value in body.items() if value is not None}
        answer = self._connection.request("POST", "/memories", sent).body
        return cast("dict[str, Any]", answer["items"][0])

    def search(self, query: str, *, limit: int = 10, **options: Any) -> list[dict[str, Any]]:
        """Return the memories that fit the query best."""
        answer = self._connection.request("POST", "/memories/search", {"query": query, "limit": limit, **options}).body
        return cast("list[dict[str, Any]]", answer["items"])

    def get(self, memory_id: str) -> dict[str, Any]:
        """Return one memory with its version, which a change has to name."""
        return cast("dict[str, Any]", self._connection.request("GET", f"/memories/{memory_id}").body)

    def edit(self, memory_id: str, *, version: int, **changes: Any) -> dict[str, Any]:
        """Change a memory as it was read; raises PreconditionFailed where somebody else changed it meanwhile."""
        headers = {"If-Match": f'"v{version}"'}
        return cast(
            "dict[str, Any]",
            self._connection.request("PATCH", f"/memories/{memory_id}", changes, headers=headers).body,
        )

    def forget(self, memory_id: str, *, version: int) -> None:
        """Put a memory into the trash; it can be restored for thirty days."""
        self._connection.request("DELETE", f"/memories/{memory_id}", headers={"If-Match": f'"v{version}"'})
