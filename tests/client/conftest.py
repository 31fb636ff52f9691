"""One running hub for all tests of the client, and clients with a session of their own."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memoryhub.client import MemoryHub
from tests.live import Hub, running_hub

_numbers = itertools.count()


@pytest.fixture(scope="session")
def hub_process() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def make_client(hub_process: Hub, tmp_path: Any) -> Iterator[Callable[..., MemoryHub]]:
    """Make clients of the running hub; each has a fresh session unless it is told which."""
    made: list[MemoryHub] = []

    def make(**options: Any) -> MemoryHub:
        options.setdefault("session", f"client-{next(_numbers)}")
        options.setdefault("spool_dir", tmp_path / "spool")
        base_url = options.pop("base_url", hub_process.base)
        client = MemoryHub(base_url, options.pop("api_key", hub_process.key), **options)
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


@pytest.fixture
def hub(make_client: Callable[..., MemoryHub]) -> MemoryHub:
    return make_client()
