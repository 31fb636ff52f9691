"""The state of the database's file before a start: whole, and on a disk that SQLite can lock."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from memoryhub.common import clock

NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs"}
MAX_CHECKED_BYTES = 4 * 1024**3  # quick_check reads the whole file; above this it is left to `manage.py verify`


def check_before_start() -> None:
    """Raise CommandError where the file is damaged (naming the newest backup) or lies on a network file system."""
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3":
        return
    kind = file_system_of(Path(settings.DATA_DIR))
    if kind in NETWORK_FILE_SYSTEMS:
        raise CommandError(
            f"MEMORYHUB_DATA_DIR {settings.DATA_DIR} is on a network file system ({kind}), where SQLite's locks can't be "
            "trusted; use a local disk, or PostgreSQL by DATABASE_URL."
        )
    path = Path(settings.DATABASES["default"]["NAME"])
    if path.exists() and path.stat().st_size <= MAX_CHECKED_BYTES:
        trouble = find_damage(path)
        if trouble:
            raise CommandError(f"The database {path} is damaged ({trouble}). {newest_backup_advice()}")


def find_damage(path: Path) -> str | None:
    """Return what SQLite's quick_check complains of, or None."""
    try:
        with sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=5) as database:
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
        database.close()
    except sqlite3.DatabaseError as error:
        return str(error)
    return None if answer == "ok" else str(answer)


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
