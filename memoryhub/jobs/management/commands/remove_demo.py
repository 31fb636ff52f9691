"""`manage.py remove_demo`: the demo's workspace goes, with every row of it."""

from typing import Any

from django.core.management.base import BaseCommand

from memoryhub.flows.demo.load import find_demo, remove_demo


class Command(BaseCommand):
    help = "Remove the workspace that load_demo made, and everything in it."

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = find_demo()
        if workspace is None:
            self.stdout.write("There is no demo.")
            return
        removed = remove_demo(workspace=workspace)
        self.stdout.write(f"The demo is gone: {removed:,} rows.")
