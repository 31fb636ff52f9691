"""A hundred writers at one memory, through three doors at once: versions count up, and nobody's write is lost silently."""

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anthropic import Anthropic, ConflictError

from memoryhub.client import MemoryHub, errors
from tests.live import Hub, hub_on

WRITERS = 100
TRIES = 400


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def live_hub(request: pytest.FixtureRequest) -> Iterator[Hub]:
    with hub_on(request.param) as hub:
        yield hub


@pytest.fixture(scope="module")
def sdk(live_hub: Hub) -> Iterator[Anthropic]:
    with Anthropic(base_url=f"{live_hub.base}/anthropic", api_key=live_hub.key, max_retries=0) as client:
        yield client


def test_a_hundred_writers_through_three_doors(live_hub: Hub, sdk: Anthropic) -> None:
    """Each adds its own line to one file by read, change, write on condition, and tries again when it lost the race."""
    store = sdk.beta.memory_stores.create(name="crowd")
    made = sdk.beta.memory_stores.memories.create(store.id, path="/crowd.md", content="start\n")
    doors = [_Stores(sdk, store.id, made.id), _Rest(live_hub, made.id), _Mcp(live_hub, made.id)]

    def write(number: int) -> str:
        door = doors[number % len(doors)]
        for _ in range(TRIES):
            if door.add(f"line {number}\n"):
                return door.name
        raise AssertionError(f"writer {number} never got through")

    with ThreadPoolExecutor(20) as pool:
        used = Counter(pool.map(write, range(WRITERS)))

    content = sdk.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store.id).content or ""
    _, page = live_hub.call("GET", f"/api/v1/memories/{made.id}/versions?limit=200")
    assert sorted(used.values()) == [33, 33, 34]
    assert sorted(content.splitlines()) == sorted(["start", *(f"line {number}" for number in range(WRITERS))])
    assert [version["version"] for version in page["items"]] == list(range(WRITERS + 1, 0, -1))


def test_writers_without_a_condition_lose_no_version(live_hub: Hub, sdk: Anthropic) -> None:
    """The last one wins, and what the others wrote stands in the history."""
    store = sdk.beta.memory_stores.create(name="shouting crowd")
    memories = sdk.beta.memory_stores.memories
    made = memories.create(store.id, path="/a", content="start")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda n: memories.update(made.id, memory_store_id=store.id, content=f"text {n}"), range(40)))

    versions = list(sdk.beta.memory_stores.memory_versions.list(store.id, memory_id=made.id, view="full"))
    assert {version.content for version in versions} == {"start", *(f"text {number}" for number in range(40))}
    assert versions[0].id == memories.retrieve(made.id, memory_store_id=store.id).memory_version_id


def test_of_many_creators_of_one_path_one_wins_and_the_others_are_told(live_hub: Hub, sdk: Anthropic) -> None:
    store = sdk.beta.memory_stores.create(name="race")
    memories = sdk.beta.memory_stores.memories

    def create(number: int) -> str:
        try:
            return memories.create(store.id, path="/one", content=f"by {number}").id
        except ConflictError as error:
            return "lost" if "memory_path_conflict_error" in str(error) else str(error)

    with ThreadPoolExecutor(20) as pool:
        outcomes = Counter(pool.map(create, range(40)))

    [found] = list(memories.list(store.id))
    assert outcomes == {found.id: 1, "lost": 39}  # type: ignore[union-attr]


class _Stores:
    name = "stores"

    def __init__(self, sdk: Anthropic, store_id: str, memory_id: str) -> None:
        self._memories, self._store, self._id = sdk.beta.memory_stores.memories, store_id, memory_id

    def add(self, line: str) -> bool:
        seen = self._memories.retrieve(self._id, memory_store_id=self._store)
        condition: Any = {"type": "content_sha256", "content_sha256": seen.content_sha256}
        try:
            self._memories.update(
                self._id, memory_store_id=self._store, content=f"{seen.content}{line}", precondition=condition
            )
        except ConflictError:
            return False
        return True


class _Rest:
    name = "rest"

    def __init__(self, hub: Hub, memory_id: str) -> None:
        self._connection, self._path = MemoryHub(hub.base, hub.key).connection, f"/memories/{memory_id}"

    def add(self, line: str) -> bool:
        seen = self._connection.request("GET", self._path)
        try:
            body = {"content": seen.body["content"] + line}
            self._connection.request("PATCH", self._path, body, headers={"If-Match": seen.headers["etag"]})
        except errors.PreconditionFailed:
            return False
        return True


class _Mcp:
    name = "mcp"

    def __init__(self, hub: Hub, memory_id: str) -> None:
        self._hub, self._id = hub, memory_id
        self._reader = MemoryHub(hub.base, hub.key).connection

    def add(self, line: str) -> bool:
        seen = self._reader.request("GET", f"/memories/{self._id}").body
        answer = self._call(id=self._id, content=seen["content"] + line, expected_version=seen["version"])
        if answer["isError"]:
            assert "changed meanwhile" in answer["content"][0]["text"], answer
        return not answer["isError"]

    def _call(self, **arguments: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        body = {**message, "params": {"name": "memory_update", "arguments": arguments}}
        headers = {
            "Authorization": f"Bearer {self._hub.key}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        request = urllib.request.Request(f"{self._hub.base}/mcp", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read())["result"]
