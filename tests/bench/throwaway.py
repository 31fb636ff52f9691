"""A hub of its own for a benchmark: a throw-away data folder, migrated, with the workspace `default`."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def throwaway_hub() -> Iterator[Any]:
    """Set Django up over an empty folder (or the database that DATABASE_URL names) and give the workspace.

    MEMORYHUB_BENCH_KEEP names a folder to use instead, which stays: for who works on one page and measures it often.
    """
    kept = os.environ.get("MEMORYHUB_BENCH_KEEP")
    folder = Path(kept or tempfile.mkdtemp(prefix="memoryhub-bench-"))
    folder.mkdir(exist_ok=True)
    os.environ["MEMORYHUB_DATA_DIR"] = str(folder)
    os.environ.setdefault("MEMORYHUB_LOG_LEVEL", "ERROR")
    os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"
    import django

    django.setup()
    from django.core.management import call_command

    from memoryhub.common.collecting import settle
    from memoryhub.workspaces.models import Workspace
    from memoryhub.workspaces.services import create_workspace

    try:
        call_command("migrate", verbosity=0)
        settle()  # as server, worker and imports do
        found = Workspace.objects.filter(name="default").first()
        yield found or create_workspace(name="default", time_zone="Asia/Shanghai")
    finally:
        if not kept:
            shutil.rmtree(folder, ignore_errors=True)


def show(figure: str, value: float, unit: str, goal: str, **more: Any) -> None:
    """One JSON line per figure."""
    print(json.dumps({"figure": figure, "value": round(value, 3), "unit": unit, "goal": goal, **more}), flush=True)
