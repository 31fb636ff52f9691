"""The Python client that agents install: `pip install memoryhub`, standard library only.

    from memoryhub.client import MemoryHub

    hub = MemoryHub("http://127.0.0.1:8000", "mh_...", session="run-42")

    @hub.tools.cached(ttl=600, depends_on=files("path"))
    def read_file(path): ...                     # runs once for the same path, until the file changes

    client = hub.prompt_cache.track(Anthropic())  # records usage of every call
    hub.context.message("user", "hello")          # the session's events; hub.context.window() gives them back
    hub.memory.search("deploy day")               # what outlives the session; also remember, get, update, forget, ...

When the hub is down, tools just run and usage waits on disk.

`MemoryTool` needs the anthropic SDK and is imported when it is asked for. Nothing here imports the rest of memoryhub.
"""

from typing import TYPE_CHECKING, Any

from memoryhub.client.errors import HubError, HubUnreachable
from memoryhub.client.fingerprints import directory, files, tags, tree, version
from memoryhub.client.hub import MemoryHub

if TYPE_CHECKING:
    from memoryhub.client.memory_tool import MemoryTool

__all__ = [
    "HubError",
    "HubUnreachable",
    "MemoryHub",
    "MemoryTool",
    "directory",
    "files",
    "tags",
    "tree",
    "version",
]


def __getattr__(name: str) -> Any:
    if name == "MemoryTool":
        from memoryhub.client.memory_tool import MemoryTool

        return MemoryTool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
