"""A real hub for the browser: `manage.py up` on a free port over a data folder of its own, with the demo's rows."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ADMIN_PASSWORD = "the quiet evening of a test"
VIEWER_PASSWORD = "another quiet evening of a test"
START_SECONDS = 90


@dataclass(frozen=True, slots=True)
class Hub:
    """Where the hub is and how to talk to its commands."""

    base: str
    environment: dict[str, str]

    def manage(self, *arguments: str, **environment: str) -> str:
        """Run a management command over the hub's data and return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {' '.join(arguments)}: {done.stderr[-2000:]}")
        return done.stdout


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serve() -> Iterator[Hub]:
    """Serve a hub with demo data until the block ends; its processes are ended by their own group."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MEMORYHUB_", "DJANGO_", "DATABASE_"))
        }
        environment = {
            **kept,
            "MEMORYHUB_DATA_DIR": folder,
            "MEMORYHUB_PORT": str(port),
            "MEMORYHUB_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "MEMORYHUB_EMBEDDER": "none",
            "MEMORYHUB_WEB_THREADS": "32",
        }
        hub = Hub(f"http://127.0.0.1:{port}", environment)
        log = Path(folder, "hub.log")
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up"],
                cwd=ROOT,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                _wait(hub, process, log)
                hub.manage("load_demo")
                viewer = ("create_user", "mia", "--role", "viewer", "--workspace", "demo")
                hub.manage(*viewer, MEMORYHUB_USER_PASSWORD=VIEWER_PASSWORD)
                yield hub
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(15)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)


def _wait(hub: Hub, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{hub.base}/readyz", timeout=1)
            return
        time.sleep(0.2)
    raise RuntimeError(f"the hub did not start: {log.read_text()[-2000:]}")
