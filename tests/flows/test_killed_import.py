"""An import that is killed in the middle and run again: everything is there, once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.live import ROOT, clean_environment

COUNT = 4_000


def ask(folder: Path, sql: str) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(folder / "memoryhub.sqlite3", timeout=30)) as database:
        return database.execute(sql).fetchall()


@pytest.mark.slow
def test_a_killed_import_is_finished_without_doubles(tmp_path: Path) -> None:
    environment = clean_environment(MEMORYHUB_DATA_DIR=str(tmp_path))
    manage = [sys.executable, "manage.py"]
    for command in (["migrate", "-v0"], ["create_workspace", "home"]):
        subprocess.run([*manage, *command], cwd=ROOT, env=environment, check=True, capture_output=True)
    file = tmp_path / "memories.jsonl"
    rows = (
        {"memory_id": f"m{number}", "content": f"note {number} about tea", "tags": ["a"]} for number in range(COUNT)
    )
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [*manage, "import_memories", str(file), "--workspace", "home", "--json"]

    doomed = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while ask(tmp_path, "SELECT count(*) FROM long_term_memory_memory")[0][0] < 500:
        assert doomed.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    [(before,)] = ask(tmp_path, "SELECT count(*) FROM long_term_memory_memory")
    again = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)

    result = json.loads(again.stdout)
    assert 500 <= before < COUNT
    assert (result["created"], result["deduplicated"], result["conflicts"]) == (COUNT - before, before, 0)
    assert ask(tmp_path, "SELECT count(*), count(DISTINCT public_id) FROM long_term_memory_memory") == [(COUNT, COUNT)]
    for table in ("memoryversion", "searchdocument", "memorytag"):
        assert ask(tmp_path, f"SELECT count(*) FROM long_term_memory_{table}") == [(COUNT,)]
    assert ask(tmp_path, "SELECT sum(subject_count) FROM audit_changeset") == [(COUNT,)]
