"""`manage.py load_demo`: two weeks of a small team's hub, in a workspace of its own."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memoryhub.common import errors
from memoryhub.flows.demo.load import load_demo
from memoryhub.jobs import first_start


class Command(BaseCommand):
    help = "Fill the workspace `demo` with two weeks of sample data that end now. Run again, it is made anew."

    def handle(self, *args: Any, **options: Any) -> None:
        for line in first_start.ensure():  # a demo needs somebody who may look at it
            self.stdout.write(line)
        started = time.monotonic()
        try:
            loaded = load_demo(progress=self._tell if self.stderr.isatty() else None)
        except errors.HubError as error:
            raise CommandError(error.detail) from error
        seconds = time.monotonic() - started
        self.stdout.write(f"The workspace {loaded.workspace.name} is ready ({seconds:.1f} s).")
        self.stdout.write(f"It opens at the next page for: {', '.join(loaded.admins) or 'nobody yet'}.")
        self.stdout.write("manage.py remove_demo, or the button on its pages, takes it away again.")

    def _tell(self, done: int, total: int) -> None:
        self.stderr.write(f"\rloading the demo: {done} of {total}", ending="\n" if done == total else "")
