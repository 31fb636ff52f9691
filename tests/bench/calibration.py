"""How fast this machine is right now: figures to hold the absolute times of a benchmark against.

A bare endpoint over HTTP on one connection, a read by primary key from a SQLite file, and a numpy scan of 100,000 vectors.
Each is a median, so that a neighbour on the machine shows, but a single hiccup does not.
"""

from __future__ import annotations

import http.client
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30
VECTORS = (100_000, 256)


def calibrate() -> dict[str, float]:
    """Return the machine's figures in milliseconds."""
    return {
        "bare_endpoint_ms": round(_bare_endpoint(), 3),
        "sqlite_read_ms": round(_sqlite_read(), 4),
        "numpy_scan_ms": round(_numpy_scan(), 3),
    }


def p50_ms(call: Callable[[], object], times: int) -> float:
    """Return the median of so many calls, after a tenth of them as a warm-up."""
    for _ in range(times // 10):
        call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def _bare_endpoint() -> float:
    with _served() as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

        def call() -> None:
            connection.request("GET", "/answer")
            connection.getresponse().read()

        return p50_ms(call, 400)


@contextmanager
def _served() -> Iterator[int]:
    """Serve the bare endpoint by granian, as the hub is served, on a free port until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--blocking-threads", "8", "--no-log", "tests.bench.bare_endpoint:application"]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the bare endpoint did not start")


def _sqlite_read() -> float:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as folder:
        connection = sqlite3.connect(Path(folder) / "calibration.sqlite3")
        connection.execute("CREATE TABLE row (id INTEGER PRIMARY KEY, name TEXT, value BLOB)")
        rows = ((number, f"name {number}", bytes(200)) for number in range(10_000))
        connection.executemany("INSERT INTO row VALUES (?, ?, ?)", rows)
        connection.commit()
        read = "SELECT name, value FROM row WHERE id = ?"
        try:
            return p50_ms(lambda: connection.execute(read, (4711,)).fetchone(), 2_000)
        finally:
            connection.close()


def _numpy_scan() -> float:
    dice = np.random.default_rng(7)
    vectors = dice.standard_normal(VECTORS, dtype=np.float32)
    query = dice.standard_normal(VECTORS[1], dtype=np.float32)
    return p50_ms(lambda: np.argpartition(vectors @ query, -10)[-10:], 20)
