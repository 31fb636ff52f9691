"""A hub that is down, killed, or wrong never stops the agent."""

import logging
import subprocess
import sys
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
