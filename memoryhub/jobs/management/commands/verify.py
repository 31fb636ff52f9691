"""`manage.py verify`: is everything that is stored whole, and does it agree with itself?"""

import sys
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection

from memoryhub.flows.verify import verify_workspace
from memoryhub.workspaces.models import Workspace

SHOWN = 20


class Command(BaseCommand):
    help = "Check the database's file and every workspace's rows against each other; exits 1 where something is wrong."

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = self._tell("the database's file", damage_of_file())
        for workspace in Workspace.objects.order_by("name"):
            for name, troubles in verify_workspace(workspace):
                wrong += self._tell(f"{workspace.name}: {name}", troubles)
        sys.exit(1 if wrong else 0)

    def _tell(self, name: str, troubles: list[str]) -> int:
        self.stdout.write(f"{'wrong' if troubles else 'good '}  {name}")
        for trouble in troubles[:SHOWN]:
            self.stdout.write(f"       {trouble}")
        if len(troubles) > SHOWN:
            self.stdout.write(f"       and {len(troubles) - SHOWN} more")
        return len(troubles)


def damage_of_file() -> list[str]:
    """Return what SQLite's own checks complain of; PostgreSQL keeps its files by itself."""
    if connection.vendor != "sqlite":
        return []
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check(20)")
        found = [row[0] for row in cursor.fetchall() if row[0] != "ok"]
        cursor.execute("PRAGMA foreign_key_check")
        return found + [
            f"{table} row {row} points to a missing {parent}" for table, row, parent, _ in cursor.fetchall()
        ]
