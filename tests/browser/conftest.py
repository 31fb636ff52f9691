"""One hub and one browser for all tests of this folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser import chromium, hub


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium.launch(chromium.find_chromium()) as running:
        yield running


@pytest.fixture(scope="session")
def live_hub(browser: Browser) -> Iterator[hub.Hub]:
    with hub.serve() as running:
        yield running
