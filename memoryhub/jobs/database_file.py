"""The state of the database's file before a start: whole, and on a disk that SQLite can lock."""

import sys
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from memoryhub.common import clock
from memoryhub.jobs.file_check import CheckFailed, FileCheck

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs"}
START_SECONDS = 5.0  # a check that takes longer goes on while the hub serves


def check_before_start() -> FileCheck | None:
    """Raise CommandError where the file is damaged (naming the newest backup) or lies on a network file system.

    Reading a large file takes long: after START_SECONDS the check goes on beside the start, and is returned.
    """
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3":
        return None
    kind = file_system_of(Path(settings.DATA_DIR))
    if kind in NETWORK_FILE_SYSTEMS:
        raise CommandError(
            f"MEMORYHUB_DATA_DIR {settings.DATA_DIR} is on a network file system ({kind}), where SQLite's locks can't be "
            "trusted; use a local disk, or PostgreSQL by DATABASE_URL."
        )
    path = Path(settings.DATABASES["default"]["NAME"])
    if not path.exists():
        return None
    check = FileCheck(path)
    if not check.is_over(within_seconds=START_SECONDS):
        return check
    refuse_damage(check)
    return None


def refuse_damage(check: FileCheck) -> None:
    """Raise CommandError with what a check that is over found, if anything."""
    try:
        damage = check.find_damage()
    except CheckFailed as error:
        sys.stderr.write(f"{error} `manage.py verify` reads it again.\n")
        return
    if damage:
        path = settings.DATABASES["default"]["NAME"]
        raise CommandError(f"The database {path} is damaged ({damage}). {newest_backup_advice()}")


def newest_backup_advice() -> str:
    """Return a sentence that names the newest backup in the data folder."""
    backups = sorted(Path(settings.DATA_DIR, "backups").glob("*.sqlite3"), key=lambda path: path.stat().st_mtime)
    if not backups:
        return "There is no backup in its folder; a copy made by `manage.py backup` elsewhere can be restored."
    return f"The newest backup is {backups[-1]}: `manage.py restore {backups[-1]}`."


def file_system_of(folder: Path) -> str:
    """Return the kind of the file system that holds the folder, "" where the machine doesn't say."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in mounts:
        _, point, this_kind, *_ = line.split()
        point = point.replace("\\040", " ")
        if len(point) >= len(best) and (folder == Path(point) or Path(point) in folder.parents):
            best, kind = point, this_kind
    return kind


@dataclass(frozen=True, slots=True)
class DatabaseLook:
    """The database as it answers now."""

    kind: str
    size_bytes: int
    answered_seconds: float


def look() -> DatabaseLook:
    """Ask the database for a sign of life and its size; raises what the database raises."""
    started = clock.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        answered = clock.monotonic() - started
        if connection.vendor == "sqlite":
            path = Path(str(connection.settings_dict["NAME"]))
            parts = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]
            return DatabaseLook("SQLite", sum(part.stat().st_size for part in parts if part.is_file()), answered)
        cursor.execute("SELECT pg_database_size(current_database())")
        return DatabaseLook("PostgreSQL", int(cursor.fetchone()[0]), answered)
