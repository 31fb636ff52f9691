"""Memories that are addressed like files: read, write, list, move and delete by path."""

from dataclasses import dataclass

from memoryhub.client import errors
from memoryhub.client.http import Connection

PAGE = 200


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file as the hub has it; `version` is what a write is based on."""

    path: str
    version: int
    size_bytes: int
    content: str = ""


class MemoryFiles:
    """The files of one scope."""

    def __init__(
        self, connection: Connection, *, agent: str | None = None, user: str | None = None, project: str | None = None
    ) -> None:
        self._connection = connection
        self._scope = {name: value for name, value in (("agent", agent), ("user", user), ("project", project)) if value}

    def read(self, path: str) -> HubFile | None:
        """The file at a path, None where there is none."""
        try:
            reply = self._connection.request("GET", "/memories/files/content", query={"path": path, **self._scope})
        except errors.NotFound as error:
            if error.slug != "unknown-file":
                raise
            return None
        return _file(reply.body)

    def list_below(self, path: str) -> list[HubFile]:
        """Every file below a directory, by path, without contents."""
        found: list[HubFile] = []
        cursor = None
        while True:
            query = {"prefix": f"{path}/", "cursor": cursor, "limit": PAGE, **self._scope}
            answer = self._connection.request("GET", "/memories/files", query=query).body
            found += [_file(item) for item in answer["items"]]
            cursor = answer["next_cursor"]
            if cursor is None:
                return found

    def create(self, path: str, content: str) -> None:
        """A new file. Raises Conflict "path-taken" where something stands there, "path-blocked" below a file."""
        body = {"path": path, "content": content, "scope": self._scope}
        self._connection.request("POST", "/memories/files", body)

    def write(self, file: HubFile, content: str) -> None:
        """New content for a file as it was read. Raises PreconditionFailed where it has changed since."""
        body = {"path": file.path, "content": content, "scope": self._scope}
        self._connection.request("PUT", "/memories/files/content", body, headers={"If-Match": f'"v{file.version}"'})

    def rename(self, old: str, new: str) -> None:
        """Move a file, or a directory with everything below it, as one change."""
        body = {"from": old, "to": new, "scope": self._scope}
        self._connection.request("POST", "/memories/files/rename", body)

    def delete(self, path: str) -> None:
        """Forget a file, or everything below a directory, as one change."""
        self._connection.request("DELETE", "/memories/files/content", query={"path": path, **self._scope})


def _file(item: dict[str, object]) -> HubFile:
    return HubFile(
        path=str(item["path"]),
        version=int(str(item["version"])),
        size_bytes=int(str(item["size_bytes"])),
        content=str(item.get("content") or ""),
    )
