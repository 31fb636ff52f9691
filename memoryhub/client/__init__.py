"""The Python client that agents install: `pip install memoryhub`, standard library only.

    from memoryhub.client import MemoryHub

    hub = MemoryHub("http://127.0.0.1:8000", "mh_...", session="run-42")

`MemoryTool` needs the anthropic SDK and is imported when it is asked for. Nothing here imports the rest of memoryhub.
"""

from typing import TYPE_CHECKING, Any

from memoryhub.client.errors import HubError, HubUnreachable
from memoryhub.client.hub import MemoryHub

if TYPE_CHECKING:
    from memoryhub.client.memory_tool import MemoryTool

__all__ = ["HubError", "HubUnreachable", "MemoryHub", "MemoryTool"]


def __getattr__(name: str) -> Any:
    if name == "MemoryTool":
        from memoryhub.client.memory_tool import MemoryTool

        return MemoryTool
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
