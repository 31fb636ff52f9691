"""`manage.py up`: one command serves the hub, says its secrets once, and stops cleanly."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.live import ROOT, Hub, clean_environment, free_port, running_hub

pytestmark = pytest.mark.slow


@pytest.fixture
def hub(tmp_path):
    live = Hub(str(tmp_path))
    live.start()
    yield live
    live.stop()


def test_the_first_start_shows_its_secrets_once_and_the_second_nothing(hub):
    key = re.search(r"API key +(mh_\S+)", hub.log()).group(1)
    assert "set by MEMORYHUB_ADMIN_PASSWORD" in hub.log()
    assert hub.call("GET", "/api/v1/jobs", key=key)[0] == 200

    assert hub.stop() < 5
    (hub.folder / "server.log").unlink()
    hub.start()

    assert "mh_" not in hub.log()
    assert "password" not in hub.log()
    assert hub.call("GET", "/api/v1/jobs", key=key)[0] == 200


def test_a_taken_port_is_named_with_its_holder(hub, tmp_path_factory):
    other = clean_environment(MEMORYHUB_DATA_DIR=str(tmp_path_factory.mktemp("other")), MEMORYHUB_PORT=str(hub.port))

    done = subprocess.run(
        [sys.executable, "manage.py", "up"], cwd=ROOT, env=other, capture_output=True, text=True, timeout=60
    )

    assert done.returncode != 0
    assert f"Port {hub.port} is in use by process" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_server_process_is_started_again(hub):
    servers = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if serves(path, hub.port)]
    assert servers
    for pid in servers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{hub.base}/healthz", timeout=1).read()
            return
        time.sleep(0.2)
    pytest.fail("the server did not come back")


def serves(cmdline, port):
    try:
        words = cmdline.read_bytes().split(b"\0")
    except OSError:  # it ended meanwhile
        return False
    return b"granian" in words and str(port).encode() in words


@pytest.mark.parametrize("pause", [0, 4], ids=["while they load", "once they serve"])
def test_children_of_a_killed_supervisor_end_by_themselves(hub, pause):
    time.sleep(pause)
    children = Path(f"/proc/{hub.process.pid}/task/{hub.process.pid}/children").read_text().split()
    os.kill(hub.process.pid, signal.SIGKILL)
    hub.process.wait()

    assert len(children) == 2
    deadline = time.monotonic() + 20
    while left := [pid for pid in children if is_running(pid)]:
        assert time.monotonic() < deadline, f"they outlived their supervisor: {left}"
        time.sleep(0.2)


def is_running(pid: str) -> bool:
    """A process that has ended may still be listed until somebody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MEMORYHUB_PORT", "eighty", "MEMORYHUB_PORT is 'eighty'"),
        ("MEMORYHUB_HOST", "0.0.0.0", "MEMORYHUB_ALLOWED_HOSTS"),
        ("MEMORYHUB_QUEUE", "amqp://x", "MEMORYHUB_QUEUE must be"),
        ("DATABASE_URL", "mysql://x/y", "DATABASE_URL"),
        ("MEMORYHUB_SECRET_KEY_FILE", "/nonexistent", "MEMORYHUB_SECRET_KEY_FILE"),
        ("MEMORYHUB_EMBEDDER", "magic", "one of local"),
    ],
)
def test_a_bad_setting_stops_the_start_and_is_named(tmp_path, name, value, expected):
    environment = {**clean_environment(MEMORYHUB_DATA_DIR=str(tmp_path)), name: value}

    done = subprocess.run(
        [sys.executable, "manage.py", "check"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.returncode != 0
    assert expected in done.stderr


def test_a_damaged_database_stops_the_start_and_names_the_newest_backup(tmp_path):
    (tmp_path / "memoryhub.sqlite3").write_bytes(b"SQLite format 3\x00" + os.urandom(8192))
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "memoryhub-20261101-000000.sqlite3").write_bytes(b"")

    environment = clean_environment(MEMORYHUB_DATA_DIR=str(tmp_path), MEMORYHUB_PORT=str(free_port()))
    done = subprocess.run(
        [sys.executable, "manage.py", "up"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )

    assert done.returncode != 0
    assert "damaged" in done.stderr
    assert "memoryhub-20261101-000000.sqlite3" in done.stderr


def test_two_hubs_live_side_by_side():
    with running_hub() as first, running_hub() as second:
        assert first.call("GET", "/api/v1/jobs", key=second.key)[0] == 401
        assert second.call("GET", "/api/v1/jobs")[0] == 200
