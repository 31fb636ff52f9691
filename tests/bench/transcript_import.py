"""`python -m tests.bench.transcript_import`: how fast 200 MB of transcripts come in, in how much memory, and again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.throwaway import show
from tests.bench.transcripts import write_transcripts

MEGABYTES = int(os.environ.get("BENCH_MEGABYTES", "200"))
ROOT = Path(__file__).resolve().parents[2]
# Runs the command and says what it took: seconds, processor seconds and the largest memory.
MEASURED = """
import resource, sys, time
from django.core.management import execute_from_command_line
start = time.perf_counter()
execute_from_command_line(["manage.py", *sys.argv[1:]])
used = resource.getrusage(resource.RUSAGE_SELF)
print("took", time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "MEMORYHUB_DATA_DIR": str(folder / "data"),
            "DJANGO_SETTINGS_MODULE": "memoryhub.settings",
        }
        manage = [sys.executable, "manage.py"]
        subprocess.run([*manage, "migrate", "-v0"], cwd=ROOT, env=environment, check=True)
        for workspace in ("usage", "whole"):
            command = [*manage, "create_workspace", workspace]
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
        write_transcripts(folder / "projects", megabytes=MEGABYTES, files=50)
        usage = ["import_transcripts", str(folder / "projects"), "--json", "--workspace", "usage", "--usage-only"]
        whole = ["import_transcripts", str(folder / "projects"), "--json", "--workspace", "whole"]
        _, cpu, memory = run(usage, environment)
        show("import_usage_only", MEGABYTES / cpu, "MB/s of one core", ">= 60", memory_mb=round(memory))
        start = time.perf_counter()
        run(usage, environment)
        show("import_again", time.perf_counter() - start, "s", "<= 1", megabytes=MEGABYTES)
        _, cpu, memory = run(whole, environment)
        show("import_with_events", MEGABYTES / cpu, "MB/s of one core", ">= 15", memory_mb=round(memory))
        show("import_memory", memory, "MB", "< 300", megabytes=MEGABYTES)


def run(arguments: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    command = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    match = re.search(r"^took (\S+) (\S+) (\S+)$", done.stdout, re.MULTILINE)
    assert match is not None, done.stdout
    seconds, processor, memory = map(float, match.groups())
    return seconds, processor, memory


if __name__ == "__main__":
    main()
