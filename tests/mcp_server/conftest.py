"""One running hub for all tests of this door, and the real MCP client pointed at it."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.live import Hub, running_hub

_numbers = itertools.count()


@pytest.fixture(scope="session")
def live_hub() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return f"user {next(_numbers)}"


def connect(hub: Hub, use: Callable[[Client], Awaitable[Any]], *, key: str = "", mode: Any = "auto") -> Any:
    """Run something with a connected client and return what it returns."""

    async def session() -> Any:
        headers = {"Authorization": f"Bearer {key or hub.key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{hub.base}/mcp", http_client=http), mode=mode) as client,
        ):
            return await use(client)

    return asyncio.run(session())


@pytest.fixture
def call(live_hub: Hub) -> Callable[..., Any]:
    """Call one tool; the structured answer, or the error's text for a tool that failed."""

    def run(tool: str, /, *, key: str = "", **arguments: Any) -> Any:
        async def use(client: Client) -> Any:
            answer = await client.call_tool(tool, arguments)
            if answer.is_error:
                return answer.content[0].text  # type: ignore[union-attr]
            assert answer.structured_content is not None
            return answer.structured_content

        return connect(live_hub, use, key=key)

    return run
