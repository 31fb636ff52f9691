"""A backup is whole, proven, and comes back."""

import json
import sqlite3
import threading
from contextlib import closing

import pytest

from tests.live import running_hub

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hub():
    with running_hub() as live:
        yield live


def test_a_backup_while_writers_run_is_whole_and_restores(hub, tmp_path):
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            assert hub.call("PUT", f"/api/v1/sessions/b{number}", {"agent": "main"})[0] < 300

    writer = threading.Thread(target=write)
    writer.start()
    try:
        done = hub.manage("backup", str(tmp_path / "copy.sqlite3"))
    finally:
        stop.set()
        writer.join()

    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "copy.sqlite3.json").read_text())
    with closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        sessions = copy.execute("SELECT count(*) FROM workspaces_session").fetchone()[0]
    assert manifest["row_counts"]["workspaces_session"] == sessions

    refused = hub.manage("restore", str(tmp_path / "copy.sqlite3"))
    assert refused.returncode != 0
    assert "running" in refused.stderr

    hub.stop()
    restored = hub.manage("restore", str(tmp_path / "copy.sqlite3"))
    assert restored.returncode == 0, restored.stderr
    hub.start()
    with closing(sqlite3.connect(hub.folder / "memoryhub.sqlite3")) as live:
        assert live.execute("SELECT count(*) FROM workspaces_session").fetchone()[0] == sessions


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 100])
def test_what_is_not_a_backup_is_refused(hub, tmp_path, damage):
    bad = tmp_path / "bad.sqlite3"
    bad.write_bytes(damage)
    bad.with_name("bad.sqlite3.json").write_text(
        json.dumps({"version": "1", "created_at": "", "sha256": "0" * 64, "row_counts": {}})
    )

    refused = hub.manage("restore", "--force", str(bad))

    assert refused.returncode != 0
    assert "Traceback" not in refused.stderr
    assert hub.call("GET", "/api/v1/jobs")[0] == 200
