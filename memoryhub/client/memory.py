"""`hub.memory`: what outlives the session."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from memoryhub.client.http import Connection

Memory = dict[str, Any]  # as the API answers: id, version, content, scope, subject, kind, importance, tags, state, ...
MAX_AT_ONCE = 1_000


class LongTermMemory:
    """Memories of the key's workspace.

    Every call raises a HubError for what the hub refuses, HubUnreachable where it does not answer. A write that names
    the `version` it was read with raises PreconditionFailed where somebody else changed the memory meanwhile.
    """

    def __init__(self, connection: Connection, *, session: str | None) -> None:
        self._connection = connection
        self._session = session

    # --- keeping -----------------------------------------------------------------------------------------------------
    def remember(self, content: str, *, scope: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """Remember a text; the same text in the same scope is stored once.

        `scope` names an agent, a user or a project, or several of them; a bound key fills in its own. Fields are those
        of the API: subject, kind, importance (0 to 1), tags, path, pinned, valid_from, valid_until, expires_at, event,
        supersedes. Returns `{"id", "created", "deduplicated", "state", "trust", "flags", ...}`.
        """
        return self.remember_all([{"content": content, **fields}], scope=scope)[0]

    def remember_all(
        self, memories: Sequence[Mapping[str, Any]], *, scope: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Remember several, up to 1,000 in one transaction, and return what became of each, in their order."""
        common = {"session": self._session, "scope": dict(scope) if scope else None}
        given = {name: value for name, value in common.items() if value is not None}
        answers: list[dict[str, Any]] = []
        for start in range(0, len(memories), MAX_AT_ONCE):
            chunk = [{**given, **memory} for memory in memories[start : start + MAX_AT_ONCE]]
            answers += self._call("POST", "/memories", chunk)["items"]
        return answers

    # --- finding -----------------------------------------------------------------------------------------------------
    def search(
        self,
        query: str,
        *,
        scope: Mapping[str, str] | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int = 10,
        as_of: str | None = None,
        explain: bool = False,
        **options: Any,
    ) -> list[Memory]:
        """Return the memories that fit the query best, each with `score`, `rank` and `parts`.

        `filters`: tags, tags_any, tags_none, kind, state, session, since, until, importance_gte. `as_of` (an ISO time)
        returns memories as they stood then. Options are the API's: weights, include, record.
        """
        asked = {"scope": scope, "filters": filters, "as_of": as_of, "session": self._session}
        given = {name: value for name, value in asked.items() if value is not None}
        body = {"query": query, "limit": limit, "explain": explain, **given, **options}
        return cast("list[Memory]", self._call("POST", "/memories/search", body)["items"])

    def render(self, query: str | None = None, *, ids: Sequence[str] | None = None, **options: Any) -> str:
        """Return memories as one stable block of text for a context window: those with these ids, or a search's.

        The same memories give the same bytes, so the block does not break a prompt cache.
        """
        given = {"query": query, "ids": list(ids) if ids is not None else None, "session": self._session}
        body = {name: value for name, value in given.items() if value is not None}
        return cast("str", self._call("POST", "/memories/render", {**body, **options})["text"])

    def why_not(self, query: str, memory_id: str, **options: Any) -> dict[str, Any]:
        """Return the step at which a search (with these options) loses a memory, or its rank with its scores."""
        body = {"query": query, "memory_id": memory_id, **options}
        return cast("dict[str, Any]", self._call("POST", "/memories/why-not", body))

    def list_all(self, *, limit: int | None = None, **filters: Any) -> Iterator[Memory]:
        """Yield memories page by page: agent, user, project, tag, tags_any, kind, state, session, order, since."""
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            query = {**filters, "cursor": cursor, "limit": 200 if left is None else min(200, left)}
            page = self._connection.request("GET", "/memories", query=query).body
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return
            left = None if left is None else left - len(page["items"])

    def get(self, memory_id: str) -> Memory:
        """Return one memory with its version, which a change has to name."""
        return cast("Memory", self._call("GET", _path(memory_id)))

    def versions(self, memory_id: str) -> Iterator[dict[str, Any]]:
        """Yield a memory's versions, the newest first, also of a forgotten one."""
        cursor: str | None = None
        while True:
            query = {"cursor": cursor, "limit": 200}
            page = self._connection.request("GET", f"{_path(memory_id)}/versions", query=query).body
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    # --- changing ----------------------------------------------------------------------------------------------------
    def update(self, memory_id: str, *, version: int, **changes: Any) -> Memory:
        """Set these fields of a memory as it was read, and return it; what is left out stays.

        content, subject, kind, importance, tags, add_tags, remove_tags, pinned, archived, path, scope, valid_from,
        valid_until, expires_at; `reason` is kept in the history.
        """
        return cast("Memory", self._call("PATCH", _path(memory_id), changes, version=version))

    def supersede(self, memory_id: str, content: str, **fields: Any) -> dict[str, Any]:
        """Store a newer memory in the place of this one, which stays readable and says what replaced it.

        Fields that are left out (scope, kind, tags, importance, subject) are taken from the older one.
        """
        answer = self._call("POST", f"{_path(memory_id)}/supersede", {"content": content, **fields})
        return cast("dict[str, Any]", answer["items"][0])

    def forget(self, memory_id: str, *, version: int) -> None:
        """Put a memory into the trash; it can be restored for thirty days."""
        self._call("DELETE", _path(memory_id), version=version)

    def restore(self, memory_id: str, *, version: int | None = None) -> Memory:
        """Bring a memory back from trash or archive, or to the form of an earlier `version`."""
        body = {} if version is None else {"version": version}
        return cast("Memory", self._call("POST", f"{_path(memory_id)}/restore", body))

    def rate(self, memory_id: str, *, helpful: bool, reason: str = "") -> dict[str, Any]:
        """Say whether a recalled memory helped; ratings re-rank, they never forget."""
        body = {"helpful": helpful, "reason": reason}
        return cast("dict[str, Any]", self._call("POST", f"{_path(memory_id)}/feedback", body))

    def _call(self, method: str, path: str, body: Any = None, *, version: int | None = None) -> Any:
        headers = {"If-Match": f'"v{version}"'} if version is not None else None
        return self._connection.request(method, path, body, headers=headers).body


def _path(memory_id: str) -> str:
    return f"/memories/{quote(memory_id, safe='')}"
