"""Consistent copies of the database while writers run, and back.

SQLite: VACUUM INTO a draft beside the destination, integrity_check, fsync, rename; a manifest with every table's row count and
the file's SHA-256 lies beside it. PostgreSQL: pg_dump and pg_restore of the server's own package.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from memoryhub import __version__
from memoryhub.common import clock, errors
from memoryhub.jobs import heartbeat

BACKUP_FOLDER = "backups"
ORDINARY_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' "
    "AND name NOT LIKE 'sqlite_%' ORDER BY name"
)


class BackupFailed(errors.HubError):
    slug = "backup-failed"
    title = "The backup failed"


class RestoreRefused(errors.Conflict):
    slug = "restore-refused"
    title = "This can't be restored"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup holds: enough to prove a restore."""

    version: str
    created_at: str
    sha256: str
    row_counts: dict[str, int]


def back_up(destination: Path) -> Manifest:
    """Write a backup to the file (a folder gets a file named by time) and return its manifest."""
    if destination.is_dir():
        destination = destination / f"memoryhub-{clock.now():%Y%m%d-%H%M%S}.{'sqlite3' if _is_sqlite() else 'dump'}"
    destination.parent.mkdir(parents=True, exist_ok=True)
    draft = destination.with_name(f".{destination.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        counts = _copy_sqlite(draft) if _is_sqlite() else _dump_postgres(draft)
        _sync(draft)
        manifest = Manifest(__version__, clock.now().isoformat(), _sha256(draft), counts)
        draft.replace(destination)
        _manifest_path(destination).write_text(json.dumps(asdict(manifest), indent=1))
        _sync(destination.parent)
    finally:
        draft.unlink(missing_ok=True)
    return manifest


def restore(source: Path, *, force: bool = False) -> dict[str, int]:
    """Put a backup in the place of the current database and return the row counts; the old file is kept beside it."""
    if not source.is_file():
        raise RestoreRefused(f"{source} is not a file.")
    if heartbeat.is_fresh() and not force:
        raise RestoreRefused("The hub is running; stop it first.")
    manifest = read_manifest(source)
    if manifest and _sha256(source) != manifest.sha256:
        raise RestoreRefused(f"{source} is not what its manifest says; it was changed or cut off.")
    counts = _restore_sqlite(source) if _is_sqlite() else _restore_postgres(source)
    if manifest and counts != manifest.row_counts:
        raise RestoreRefused("The restored rows are not those of the manifest.")
    return counts


def read_manifest(backup: Path) -> Manifest | None:
    """Return the manifest beside a backup, None where there is none."""
    path = _manifest_path(backup)
    return Manifest(**json.loads(path.read_text())) if path.exists() else None


def list_backups() -> list[Path]:
    """Return the backups in the data folder, the newest first."""
    folder = Path(settings.DATA_DIR, BACKUP_FOLDER)
    found = [path for path in folder.glob("memoryhub-*") if path.suffix in (".sqlite3", ".dump")]
    return sorted(found, key=lambda path: path.name, reverse=True)


def list_put_aside() -> list[Path]:
    """Return the databases that restores put aside."""
    return sorted(Path(settings.DATA_DIR).glob("*.before-restore-*"))


def forget_old_backups(keep: int) -> int:
    """Remove all but the newest backups in the data folder and return how many went."""
    old = list_backups()[keep:]
    for path in old:
        path.unlink(missing_ok=True)
        _manifest_path(path).unlink(missing_ok=True)
    return len(old)


def row_counts(database: sqlite3.Connection) -> dict[str, int]:
    """Return {table: rows} of the ordinary tables."""
    tables = database.execute(ORDINARY_TABLES).fetchall()
    count = 'SELECT count(*) FROM "{}"'  # the names come from the schema itself
    return {name: database.execute(count.format(name)).fetchone()[0] for (name,) in tables}


def _is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def _database_path() -> Path:
    return Path(str(connection.settings_dict["NAME"]))


def _copy_sqlite(draft: Path) -> dict[str, int]:
    try:
        with closing(sqlite3.connect(f"{_database_path().resolve().as_uri()}?mode=ro", uri=True, timeout=30)) as live:
            live.execute("VACUUM INTO ?", (str(draft),))
        with closing(sqlite3.connect(draft)) as copy:
            (answer,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise BackupFailed(f"The copy is not whole: {answer}")
            return row_counts(copy)
    except sqlite3.Error as error:
        raise BackupFailed(str(error)) from error


def _restore_sqlite(source: Path) -> dict[str, int]:
    target = _database_path()
    draft = target.with_name(f".{target.name}.restoring")
    shutil.copyfile(source, draft)
    try:
        with closing(sqlite3.connect(draft)) as copy:
            (answer,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise RestoreRefused(f"The backup is damaged: {answer}")
            counts = row_counts(copy)
    except sqlite3.DatabaseError as error:
        draft.unlink(missing_ok=True)
        raise RestoreRefused(f"{source} is not a SQLite database.") from error
    connection.close()
    _sync(draft)
    if target.exists():
        with closing(sqlite3.connect(target, timeout=5)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        target.replace(target.with_name(f"{target.name}.before-restore-{clock.now():%Y%m%d-%H%M%S}"))
    for rest in ("-wal", "-shm"):
        target.with_name(target.name + rest).unlink(missing_ok=True)
    draft.replace(target)
    _sync(target.parent)
    return counts


def _postgres_tool(name: str, *arguments: str) -> None:
    tool = shutil.which(name)
    if tool is None:
        raise BackupFailed(f"{name} is missing: install PostgreSQL's client package.")
    database = connection.settings_dict
    host, port, user = (str(database[key]) for key in ("HOST", "PORT", "USER"))
    flags = [*(["-h", host] if host else []), *(["-p", port] if port else []), *(["-U", user] if user else [])]
    environment = {**os.environ, **({"PGPASSWORD": str(database["PASSWORD"])} if database["PASSWORD"] else {})}
    command = [tool, *flags, "-d", str(database["NAME"]), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BackupFailed(done.stderr.strip()[-500:])


def _dump_postgres(draft: Path) -> dict[str, int]:
    _postgres_tool("pg_dump", "--format=custom", "--file", str(draft))
    return {}  # the dump is one snapshot; rows counted beside it would be of another moment


def _restore_postgres(source: Path) -> dict[str, int]:
    connection.close()
    _postgres_tool("pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(source))
    return {}


def _manifest_path(backup: Path) -> Path:
    return backup.with_name(backup.name + ".json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def run(job: Any) -> dict[str, Any]:
    """Back up into the data folder and keep the newest few: the daily job."""
    if not settings.BACKUPS_KEPT:
        return {"skipped": "MEMORYHUB_BACKUPS_KEPT is 0"}
    folder = Path(settings.DATA_DIR, BACKUP_FOLDER)
    folder.mkdir(mode=0o700, exist_ok=True)
    manifest = back_up(folder)
    return {"rows": sum(manifest.row_counts.values()), "forgotten": forget_old_backups(settings.BACKUPS_KEPT)}
