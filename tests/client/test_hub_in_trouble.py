"""A hub that is down, killed, or wrong never stops the agent."""

import logging
import subprocess
import sys
import threading
import time

import pytest

from memoryhub.client import MemoryHub
from memoryhub.client.errors import HubUnreachable
from tests.live import free_port, running_hub


@pytest.fixture
def nowhere(tmp_path):
    client = MemoryHub(f"http://127.0.0.1:{free_port()}", "mh_x", session="s", spool_dir=tmp_path, timeout_seconds=2)
    yield client
    client.close()


def test_tools_just_run_and_one_warning_is_given(nowhere, caplog):
    runs = []

    @nowhere.tools.cached
    def get(value):
        runs.append(value)
        return value

    with caplog.at_level(logging.WARNING, logger="memoryhub.client"):
        assert [get(1) for _ in range(5)] == [1] * 5

    assert len(runs) == 5
    assert len([r for r in caplog.records if "tools run uncached" in r.message]) == 1


def test_writes_run_too(nowhere):
    @nowhere.tools.writes("anything")
    def write():
        return "done"

    assert write() == "done"


def test_a_wrong_key_does_not_stop_a_tool(hub_process, tmp_path):
    client = MemoryHub(hub_process.base, "mh_aaaaaaaa_" + "b" * 43, session="s", spool_dir=tmp_path)

    @client.tools.cached
    def get():
        return "answer"

    assert get() == get() == "answer"
    client.close()


def test_by_hand_says_what_is_wrong(nowhere):
    with pytest.raises(HubUnreachable):
        nowhere.tools.look_up("tool")


def usage(number):
    return {
        "message_id": f"msg_spooled_{number}",
        "model": "claude-opus-5-5",
        "started_at": "2026-11-10T10:00:00Z",
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "request": {"messages": [{"role": "user", "content": "not for the disk"}]},
    }


def test_usage_waits_on_disk_and_arrives_after_the_restart(tmp_path):
    """The hub is stopped in the middle of a run; the run goes on, and its usage is there once the hub is back."""
    with running_hub() as hub:
        client = MemoryHub(hub.base, hub.key, session="s", spool_dir=tmp_path)
        client.prompt_cache.record(usage(1))
        assert client.prompt_cache.flush()
        hub.stop()
        for number in range(2, 40):
            client.prompt_cache.record(usage(number))
        assert client.prompt_cache.flush()
        assert client._sender.spooled == 38
        assert "not for the disk" not in client._sender._file.read_text()

        hub.start()

        deadline = time.monotonic() + 40
        total = 0
        while time.monotonic() < deadline and total != 39:
            time.sleep(0.5)
            _, report = hub.call("GET", "/api/v1/prompt-cache/report?from=2026-11-01&to=2026-11-30")
            total = report["totals"].get("requests", 0)
        assert total == 39
        assert client._sender.spooled == 0
        client.close()


def test_the_next_process_sends_what_a_killed_one_left(hub_process, tmp_path):
    base = f"http://127.0.0.1:{free_port()}"
    code = (
        "import os, time\n"
        "from memoryhub.client import MemoryHub\n"
        f"hub = MemoryHub({base!r}, 'mh_x', session='s', spool_dir={str(tmp_path)!r}, timeout_seconds=1)\n"
        f"hub.prompt_cache.record({usage('killed')!r})\n"
        "hub.prompt_cache.flush(); os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    (left,) = tmp_path.glob("usage-*.jsonl")

    client = MemoryHub(hub_process.base, hub_process.key, session="s", spool_dir=tmp_path / "other")
    left.rename(tmp_path / "moved")
    client._sender._file.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "moved").rename(client._sender._file)
    client._sender._start()

    deadline = time.monotonic() + 20
    while list((tmp_path / "other").iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert client._sender.spooled == 0
    _, report = hub_process.call("GET", "/api/v1/prompt-cache/report?from=2026-11-01&to=2026-11-30&group_by=session")
    assert report["totals"]["requests"] >= 1
    client.close()


def test_an_agent_runs_on_while_the_hub_is_away_and_all_of_it_is_known_afterwards(tmp_path):
    """A run of steps, each a tool call, a write and a model's answer; the hub stops in the middle and comes back."""
    with running_hub() as hub:
        client = MemoryHub(hub.base, hub.key, session="run", spool_dir=tmp_path, timeout_seconds=2)
        client.tools._break_seconds = 0.1
        runs = []

        @client.tools.cached(name="look", version="")
        def look(what):
            runs.append(what)
            return f"seen {what}"

        @client.tools.writes("look", name="change")
        def change(what):
            return f"changed {what}"

        def step(number):
            assert look(number % 3) == f"seen {number % 3}"
            if number % 5 == 4:
                assert change(number) == f"changed {number}"
            client.prompt_cache.record(usage(f"run-{number}"))

        for number in range(10):
            step(number)
        asked = len(runs)
        assert asked == 6, "three, and three again after a write: the second write has not been looked after yet"
        assert client.prompt_cache.flush()
        hub.stop()
        for number in range(10, 20):
            step(number)
        assert len(runs) == asked + 10, "without a hub the tools just run"
        hub.start()
        for number in range(20, 25):
            step(number)

        deadline = time.monotonic() + 60
        total = 0
        while time.monotonic() < deadline and total != 25:
            time.sleep(0.5)
            _, report = hub.call("GET", "/api/v1/prompt-cache/report?from=2026-11-01&to=2026-11-30")
            total = report["totals"].get("requests", 0)
        assert total == 25
        client.tools._resume_at = 0.0
        assert look("again") == look("again") == "seen again"
        assert runs.count("again") == 1, "the cache works again"
        client.close()


HOLDER = """
import sys, time
from memoryhub.client import MemoryHub
base, key, ledger = sys.argv[1:]
hub = MemoryHub(base, key, session="fifty-killed")

@hub.tools.cached(name="slow", version="")
def slow(value):
    with open(ledger, "a") as file:
        file.write("begun\\n")
    time.sleep(600)

slow(21)
"""


def test_fifty_wait_for_a_holder_that_is_killed_and_it_runs_once_more(hub_process, make_client, monkeypatch, tmp_path):
    """Ten clients with five threads each wait for another process; it dies in the middle of the tool."""
    monkeypatch.setattr("memoryhub.client.leases.LEASE_SECONDS", 4.0)
    ledger = tmp_path / "ledger"
    code = HOLDER.replace(
        "hub = MemoryHub", "import memoryhub.client.tools as t; t.LEASE_SECONDS = 4.0\nhub = MemoryHub"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, hub_process.base, hub_process.key, str(ledger)])
    deadline = time.monotonic() + 60
    while not ledger.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    runs, answers = [], []

    def slow_tool(client):
        @client.tools.cached(name="slow", version="")
        def slow(value):
            runs.append(value)
            time.sleep(0.3)
            return value * 2

        return slow

    tools = [slow_tool(make_client(session="fifty-killed")) for _ in range(10)]
    threads = [threading.Thread(target=lambda i=i: answers.append(tools[i % 10](21))) for i in range(50)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    assert (runs, answers) == ([], []), "the holder lives"
    holder.kill()
    holder.wait()
    for thread in threads:
        thread.join(60)

    assert answers == [42] * 50
    assert runs == [21]
    assert ledger.read_text() == "begun\n"


def test_a_killed_holder_does_not_block_the_others(hub_process, make_client, monkeypatch):
    """The process that computes dies without a word: its lease runs out and somebody else computes."""
    code = (
        "import os\n"
        "from memoryhub.client import MemoryHub\n"
        f"hub = MemoryHub({hub_process.base!r}, {hub_process.key!r}, session='killed')\n"
        "hub.tools.set_policy('dying', cacheable=True)\n"
        "answer = hub.tools.look_up('dying', {'value': 1}, lease=True, lease_seconds=2)\n"
        "assert answer.raw['lease'], answer\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    client = make_client(session="killed")
    runs = []

    @client.tools.cached(name="dying", version="")
    def dying(value):
        runs.append(value)
        return value

    started = time.monotonic()
    assert dying(1) == 1
    assert dying(1) == 1

    assert runs == [1]
    assert 0.5 < time.monotonic() - started < 8
