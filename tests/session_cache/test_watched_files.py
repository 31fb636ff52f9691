"""A running hub follows the folders that it may see: changes on disk invalidate, and an unbroken watch is a proof."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.live import running_hub


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    root = tmp_path_factory.mktemp("watched")
    with running_hub(MEMORYHUB_FILE_ROOTS=str(root)) as hub:
        yield hub, root


def put(hub, path, kind="file", **facts):
    depends_on = [{"kind": kind, "path": str(path), **(facts or {"sha256": "as seen"})}]
    body = {"tool": "list", "params": {"path": str(path)}, "value": 1, "depends_on": depends_on}
    status, answer = hub.call("PUT", "/api/v1/sessions/s/tool-results", body)
    assert status == 201, answer


def look(hub, path):
    body = {"tool": "list", "params": {"path": str(path)}}
    return hub.call("POST", "/api/v1/sessions/s/tool-results/lookup", body)[1]


def wait_until(condition, seconds=15.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def test_a_change_on_disk_invalidates_and_a_watch_vouches(watched):
    hub, root = watched
    hub.call("PUT", "/api/v1/tool-policies/list", {"cacheable": True})
    folder = root / "sub"
    folder.mkdir()

    def vouched():
        put(hub, folder, kind="directory")
        return look(hub, folder)["state"] == "hit"

    wait_until(vouched)
    assert look(hub, folder)["proof"]["verified_by"] == "event"

    (folder / "new").write_text("x")

    answer = wait_until(lambda: (found := look(hub, folder))["state"] == "miss" and found)
    assert answer["reason"] == "invalidated"
    _, log = hub.call("GET", "/api/v1/invalidations")
    assert (log["items"][0]["strategy"], log["items"][0]["by"]) == ("event", "file watcher")


def test_many_changes_at_once_take_the_whole_folder(watched):
    hub, root = watched
    hub.call("PUT", "/api/v1/tool-policies/list", {"cacheable": True})
    folder = root / "other"
    folder.mkdir()
    wait_until(lambda: put(hub, folder, kind="directory") or look(hub, folder)["state"] == "hit")

    for number in range(400):
        (root / f"f{number}").write_text("x")

    wait_until(lambda: look(hub, folder)["state"] == "miss")


def watching_process(hub):
    """The hub's process that follows folders: the one that holds the system's queue of changes."""
    waiting = [hub.process.pid]
    while waiting:
        pid = waiting.pop()
        for task in Path(f"/proc/{pid}/task").iterdir():
            waiting += [int(child) for child in (task / "children").read_text().split()]
        for handle in Path(f"/proc/{pid}/fd").iterdir():
            if os.readlink(handle) == "anon_inode:inotify":
                return pid
    raise AssertionError("nobody watches")


@pytest.mark.slow
@pytest.mark.skipif("not os.path.exists('/proc/sys/fs/inotify')", reason="needs Linux's own queue of changes")
def test_a_watcher_whose_queue_ran_over_takes_the_whole_folder(watched):
    """More changes than the system keeps, while the watcher is stopped: the one that counts is lost without a word."""
    hub, root = watched
    hub.call("PUT", "/api/v1/tool-policies/list", {"cacheable": True})
    folder = root / "overrun"
    folder.mkdir()
    wait_until(lambda: put(hub, folder, kind="directory") or look(hub, folder)["state"] == "hit")
    kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watcher = watching_process(hub)

    os.kill(watcher, signal.SIGSTOP)
    try:
        noisy = [(root / name).open("a") for name in ("noise-1", "noise-2")]
        for number in range(kept + 1000):
            noisy[number % 2].write("x")
            noisy[number % 2].flush()
        (folder / "new").write_text("x")
        time.sleep(5)
    finally:
        os.kill(watcher, signal.SIGCONT)
        for file in noisy:
            file.close()

    wait_until(lambda: look(hub, folder)["state"] == "miss", seconds=20)
    assert look(hub, folder)["reason"] == "invalidated"
    wait_until(lambda: put(hub, folder, kind="directory") or look(hub, folder)["state"] == "hit")
