"""An MCP client that asks a server for its tools over HTTP."""

import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def list_tools(url: str, headers: dict[str, str]) -> list[str]:
    """Return the names of the server's tools, as a client with this configuration finds them."""
    return asyncio.run(_list_tools(url, headers))


async def _list_tools(url: str, headers: dict[str, str]) -> list[str]:
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return [tool.name for tool in (await client.list_tools()).tools]
