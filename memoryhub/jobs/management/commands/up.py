"""`manage.py up`: serve the hub. Migrate, first start, then web and worker, supervised; TERM or Ctrl-C stops both."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from memoryhub.jobs import database_file, first_start, ports, static_files
from memoryhub.jobs.file_check import FileCheck

STOP_SECONDS = 4.5
RESTART_PAUSE_SECONDS = 1.0


class Command(BaseCommand):
    help = "Serve the hub: migrate, make the first admin and key, run web and worker until TERM."

    def handle(self, *args: Any, **options: Any) -> None:
        holder = ports.find_holder(settings.BIND_HOST, settings.BIND_PORT)
        if holder:
            raise CommandError(f"Port {settings.BIND_PORT} is in use by {holder}; set MEMORYHUB_PORT to another one.")
        check = database_file.check_before_start()
        call_command("migrate", interactive=False, verbosity=0)
        static_files.collect_if_changed()
        for line in first_start.ensure():
            self.stdout.write(line)
        self.stdout.write(f"MemoryHub is at http://{_shown_host()}:{settings.BIND_PORT}/ (Ctrl-C stops it)")
        if check:
            self.stdout.write("Its file is large: the rest of it is read meanwhile; damage stops the hub.")
        self.stdout.flush()
        Supervisor(check).run()


def _shown_host() -> str:
    return "127.0.0.1" if settings.BIND_HOST in ("0.0.0.0", "::") else settings.BIND_HOST  # noqa: S104 - compared, not bound


class Supervisor:
    """Starts web and worker in sessions of their own, restarts one that dies, and ends both on TERM or INT.

    Both watch a FIFO whose writing end is held here: when it closes, streams end themselves, and a child whose supervisor was
    killed ends as well.
    """

    def __init__(self, check: FileCheck | None = None) -> None:
        self.stopping = False
        self.check = check
        self.fifo = Path(settings.DATA_DIR) / f"stop.{os.getpid()}"
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    def run(self) -> None:
        """Supervise until a signal comes."""
        for old in Path(settings.DATA_DIR).glob("stop.*"):
            old.unlink(missing_ok=True)
        os.mkfifo(self.fifo, 0o600)
        writing_end = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        try:
            for name in COMMANDS:
                self._start(name)
            while not self.stopping:
                time.sleep(0.2)
                self._restart_the_dead()
                self._hear_the_check()
        finally:
            os.close(writing_end)
            self._end_children()
            self.fifo.unlink(missing_ok=True)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _start(self, name: str) -> None:
        environment = {**os.environ, "MEMORYHUB_STOP_FIFO": str(self.fifo)}
        self.children[name] = subprocess.Popen(COMMANDS[name](), start_new_session=True, env=environment)

    def _restart_the_dead(self) -> None:
        for name, child in list(self.children.items()):
            if child.poll() is not None and not self.stopping:
                sys.stderr.write(f"the {name} process ended with {child.returncode}; starting it again\n")
                time.sleep(RESTART_PAUSE_SECONDS)
                self._start(name)

    def _hear_the_check(self) -> None:
        """Raise CommandError, which ends the hub, once the check of its file has found damage."""
        if self.check and self.check.is_over():
            over, self.check = self.check, None
            database_file.refuse_damage(over)

    def _end_children(self) -> None:
        if self.check:
            self.check.end()
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for child in self.children.values():
            try:
                child.wait(max(0.05, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def web_command() -> list[str]:
    """Return the server's command line: one thread a request or stream, and a bounded queue before them."""
    return [
        sys.executable, "-m", "granian", "memoryhub.wsgi:application",
        "--interface", "wsgi",
        "--host", settings.BIND_HOST,
        "--port", str(settings.BIND_PORT),
        "--workers", str(settings.WEB_WORKERS),
        "--blocking-threads", str(settings.WEB_THREADS),
        "--backpressure", str(settings.WEB_THREADS * 2),
        "--workers-kill-timeout", "3",
        "--respawn-failed-workers",
        "--no-ws",
        "--log-level", "error",
        "--working-dir", str(settings.BASE_DIR),
    ]  # fmt: skip


def worker_command() -> list[str]:
    """Return the worker's command line."""
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), "worker"]


COMMANDS = {"web": web_command, "worker": worker_command}
