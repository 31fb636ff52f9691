"""Limits of a hub whose pages and API are served by several processes."""

import http.client
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest

from memoryhub.web.login import ATTEMPTS_PER_NAME
from tests.live import Hub, hub_on

GUESSES = 24


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def hub(request: pytest.FixtureRequest) -> Iterator[Hub]:
    with hub_on(request.param, MEMORYHUB_WEB_WORKERS="3") as started:
        started.key = started.make_key("memories:write", "admin", name="limits")
        yield started


def guess(hub: Hub, name: str, password: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=60)
    try:
        connection.request("GET", "/login")
        answer = connection.getresponse()
        page = answer.read().decode()
        cookie = answer.getheader("Set-Cookie", "").split(";")[0]
        token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        body = urlencode({"username": name, "password": password, "csrfmiddlewaretoken": token})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
        connection.request("POST", "/login", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def test_guesses_at_a_password_are_counted_together(hub: Hub) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(lambda n: guess(hub, "admin", f"wrong {n}"), range(GUESSES)))

    assert statuses == {200: ATTEMPTS_PER_NAME, 429: GUESSES - ATTEMPTS_PER_NAME}


def test_writes_of_a_key_are_counted_together(hub: Hub) -> None:
    import_limit = 20
    script = (
        "from memoryhub.workspaces.models import Workspace\n"
        "w = Workspace.objects.get(name='default')\n"
        f"w.settings = {{**w.settings, 'memory_guards': {{'max_writes_per_minute': {import_limit}}}}}\n"
        "w.save()\n"
    )
    assert hub.manage("shell", "-c", script).returncode == 0
    key = hub.make_key("memories:write", name="wild")

    def write(number: int) -> int:
        body = {"content": f"wild write {number}", "scope": {"user": "ana"}}
        return hub.call("POST", "/api/v1/memories", body, key=key)[0]

    with ThreadPoolExecutor(8) as pool:
        statuses = Counter(pool.map(write, range(60)))

    assert statuses == {201: import_limit, 429: 60 - import_limit}
