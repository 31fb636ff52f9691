"""`python -m tests.bench.refresh_vs_ccusage`: 1 MB of new lines in 200 MB of transcripts.

A running hub imports them and answers a report over HTTP; the command-line tool ccusage (npm, offline) reads the same files
in a process of its own. Tokens are compared with ccusage's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.throwaway import show
from tests.bench.transcripts import SessionWriter, append_lines, write_transcripts

MEGABYTES = int(os.environ.get("BENCH_MEGABYTES", "200"))
FILES = 50
ROUNDS = 5
CCUSAGE = "ccusage@20.0.24"
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    if not shutil.which("npm"):
        show("refresh_vs_ccusage", -1, "ratio", "<= 1.0", skipped="npm is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as name:
        folder = Path(name)
        writers = write_transcripts(folder / "claude" / "projects", megabytes=MEGABYTES, files=FILES)
        tool = install_ccusage(folder / "npm")
        with running_hub(folder / "data", folder / "claude" / "projects") as hub:
            hub.call("POST", "/prompt-cache/import", {"paths": []})
            hub.wait_for_import()
            compare(hub, tool, folder / "claude", writers)


def compare(hub: Hub, tool: list[str], claude: Path, writers: list[SessionWriter]) -> None:
    """Alternate, so that a busy machine is busy for both; the best of the rounds counts."""
    ours, theirs, tokens, their_tokens = [], [], 0, 0
    for number in range(ROUNDS):
        for writer in writers[number::10]:
            append_lines(claude / "projects", writer, kilobytes=1000 // len(writers[number::10]))
        start = time.perf_counter()
        done = hub.call("POST", "/prompt-cache/import", {"paths": []})
        report = hub.call("GET", "/prompt-cache/report?group_by=day,model&tz=UTC")
        ours.append(time.perf_counter() - start)
        if done["job"]["state"] != "done":
            sys.exit(f"the import did not finish while we waited: {done}")
        start = time.perf_counter()
        out = subprocess.run(
            tool, env={**os.environ, "CLAUDE_CONFIG_DIR": str(claude)}, capture_output=True, check=True
        )
        theirs.append(time.perf_counter() - start)
        tokens, their_tokens = tokens_of(report["totals"]), json.loads(out.stdout)["totals"]["totalTokens"]
    show("refresh", min(ours) * 1000, "ms", "", megabytes=MEGABYTES)
    show("ccusage", min(theirs) * 1000, "ms", "", megabytes=MEGABYTES, version=CCUSAGE)
    ratio = min(ours) / min(theirs)
    show(
        "refresh_vs_ccusage",
        ratio,
        "ratio",
        "<= 1.0",
        tokens=tokens,
        ccusage_tokens=their_tokens,
        same=tokens == their_tokens,
    )


def tokens_of(totals: dict[str, Any]) -> int:
    return sum(value for name, value in totals.items() if name.endswith("_tokens"))


def install_ccusage(folder: Path) -> list[str]:
    folder.mkdir()
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), CCUSAGE]
    subprocess.run(command, check=True, capture_output=True)
    return [str(folder / "node_modules" / ".bin" / "ccusage"), "daily", "--offline", "--json", "--timezone", "UTC"]


class Hub:
    """A hub in processes of its own, talked to over one kept connection per call, as an agent does."""

    def __init__(self, base: str, token: str) -> None:
        self.base, self.token = base, token

    def call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"{self.base}/api/v1{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.loads(response.read())

    def wait_for_import(self) -> None:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            jobs = self.call("GET", "/jobs?limit=200")["items"]
            if all(job["state"] == "done" for job in jobs if job["kind"] == "import_transcripts"):
                return
            time.sleep(1)
        sys.exit("the first import did not end")


@contextmanager
def running_hub(data: Path, transcripts: Path) -> Iterator[Hub]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "MEMORYHUB_DATA_DIR": str(data),
        "MEMORYHUB_PORT": str(port),
        "MEMORYHUB_TRANSCRIPT_DIRS": str(transcripts),
    }
    manage = [sys.executable, str(ROOT / "manage.py")]
    hub = subprocess.Popen([*manage, "up"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        base = f"http://127.0.0.1:{port}"
        wait_until_healthy(base, hub)
        key = [*manage, "create_api_key", "--workspace", "default", "--name", "bench"]
        token = subprocess.run(key, env=environment, capture_output=True, text=True, check=True).stdout.split()[-1]
        yield Hub(base, token)
    finally:
        hub.send_signal(signal.SIGTERM)
        hub.wait(20)


def wait_until_healthy(base: str, hub: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if hub.poll() is not None:
            sys.exit("the hub ended while starting")
        try:
            urllib.request.urlopen(f"{base}/healthz", timeout=1)
            return
        except OSError:
            time.sleep(0.2)
    sys.exit("the hub did not start")


if __name__ == "__main__":
    main()
