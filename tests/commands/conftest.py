"""One hub behind which a local provider answers, a signed-in reader of its pages, and a shell with a key."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.anthropic_api.provider import Provider
from tests.commands.pages import Reader
from tests.commands.shell import Shell
from tests.live import Hub, running_hub


@pytest.fixture(scope="session")
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.close()


@pytest.fixture(scope="session")
def live_hub(provider: Provider) -> Iterator[Hub]:
    with running_hub(MEMORYHUB_ANTHROPIC_UPSTREAM=provider.url) as hub:
        yield hub


@pytest.fixture(scope="session")
def reader(live_hub: Hub) -> Reader:
    return Reader(live_hub)


@pytest.fixture
def shell(live_hub: Hub, provider: Provider, tmp_path: Path) -> Shell:
    if not shutil.which("curl") and not os.environ.get("CI"):
        pytest.skip("curl is missing; install it with `apt-get install curl`.")
    projects = tmp_path / ".claude" / "projects" / "shop"
    projects.mkdir(parents=True)
    (projects / "one.jsonl").write_text("")
    return Shell(live_hub, tmp_path, provider_url=provider.url)
