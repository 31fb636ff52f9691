"""One running hub for all tests of this door, and the real SDK pointed at it."""

import itertools
from collections.abc import Iterator

import pytest
from anthropic import Anthropic

from tests.live import Hub, running_hub

_numbers = itertools.count()


@pytest.fixture(scope="session")
def live_hub() -> Iterator[Hub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture(scope="session")
def sdk(live_hub: Hub) -> Iterator[Anthropic]:
    with Anthropic(base_url=f"{live_hub.base}/anthropic", api_key=live_hub.key, max_retries=0) as client:
        yield client


@pytest.fixture
def store_id(sdk: Anthropic) -> str:
    return sdk.beta.memory_stores.create(name=f"store {next(_numbers)}").id
