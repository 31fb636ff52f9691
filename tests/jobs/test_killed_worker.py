"""A worker that is killed in the middle of a job: the job is done once after the restart."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.live import ROOT, clean_environment

SETTINGS = {"MEMORYHUB_JOB_LEASE_SECONDS": "2"}


def rows(folder: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(folder / "memoryhub.sqlite3", timeout=10) as database:
        found = database.execute(sql).fetchall()
    database.close()
    return found


def wait_for(condition, seconds: float = 30.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="memoryhub-kill-") as name:
        yield Path(name)


def start_worker(folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.jobs.napping_worker"],
        cwd=ROOT,
        env=clean_environment(MEMORYHUB_DATA_DIR=str(folder), **SETTINGS),
        start_new_session=True,
    )


@pytest.mark.slow
def test_a_job_interrupted_by_kill_9_is_done_once_after_the_restart(folder):
    environment = clean_environment(MEMORYHUB_DATA_DIR=str(folder), **SETTINGS)
    queue_it = (
        "import django; django.setup()\n"
        "from memoryhub.jobs.first_start import ensure\n"
        "from memoryhub.work.services import enqueue_job\n"
        "list(ensure()); enqueue_job(workspace=None, kind='nap', args={'seconds': 3.0})\n"
    )
    subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
    subprocess.run(
        [sys.executable, "-c", queue_it],
        cwd=ROOT,
        env={**environment, "DJANGO_SETTINGS_MODULE": "memoryhub.settings"},
        check=True,
    )
    job = "SELECT state, attempts, result FROM work_job WHERE kind = 'nap'"

    doomed = start_worker(folder)
    wait_for(lambda: rows(folder, job)[0][0] == "running")
    os.killpg(doomed.pid, signal.SIGKILL)
    doomed.wait()
    assert rows(folder, job)[0][:2] == ("running", 1)

    time.sleep(2.1)  # the dead worker's lease runs out
    heir = start_worker(folder)
    try:
        wait_for(lambda: rows(folder, job)[0][0] == "done")
    finally:
        os.killpg(heir.pid, signal.SIGTERM)
        assert heir.wait(10) == 0

    assert rows(folder, job) == [("done", 2, '{"slept": 3.0}')]
    assert rows(folder, "SELECT count(*) FROM audit_auditevent WHERE action = 'job.napped'") == [(1,)]
