"""How the hub itself is: database, queue, worker, disk, backup, version."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import django
from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from memoryhub import __version__
from memoryhub.common import clock
from memoryhub.jobs import database_file
from memoryhub.jobs.heartbeat import BEAT_EVERY_SECONDS, HEARTBEAT_FILE
from memoryhub.prompt_cache.services.spool import lost_record_count, waiting_bytes
from memoryhub.web import formats
from memoryhub.web.access import MemberRequest, member
from memoryhub.web.htmx import wants_part
from memoryhub.work import queries

Tone = Literal["good", "warn", "bad", ""]
LATE_BEATS = 4
LOW_DISK_BYTES = 2 * 1024**3
FULL_DISK_BYTES = 256 * 1024**2
LATE_JOB_SECONDS = 300
REFRESH_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Sign:
    """One line of the page: what, how it is, and in words whether that is well."""

    label: str
    value: str
    tone: Tone
    verdict: str
    note: str = ""


@require_GET
@member("viewer")
def status(request: MemberRequest) -> HttpResponse:
    """Show the signs; the part refreshes itself."""
    signs = [_database(), _queue(), _worker(), _disk(), _backup(), _proxied_usage()]
    context = {
        "signs": signs,
        "all_well": all(sign.tone in ("good", "") for sign in signs),
        "facts": _facts(),
        "refresh_seconds": REFRESH_SECONDS,
    }
    return render(request, "hub/status.html#signs" if wants_part(request) else "hub/status.html", context)


def _database() -> Sign:
    database = database_file.look()
    answered = formats.duration(database.answered_seconds)
    value = f"{database.kind} · {formats.file_size(database.size_bytes)}"
    return Sign(_("Database"), value, "good", _("answers"), _("a question took %(time)s") % {"time": answered})


def _queue() -> Sign:
    queue = queries.summarize_queue()
    value = _("%(waiting)s waiting, %(running)s running, %(dead)s dead") % {
        "waiting": formats.count(queue.waiting),
        "running": formats.count(queue.running),
        "dead": formats.count(queue.dead),
    }
    since = queue.oldest_waiting_since
    waited = (clock.now() - since).total_seconds() if since else 0
    note = _("the oldest waits for %(time)s") % {"time": formats.duration(waited)} if since else ""
    if waited > LATE_JOB_SECONDS:
        return Sign(_("Queue"), value, "bad", _("late"), note)
    if queue.dead:
        return Sign(_("Queue"), value, "warn", _("needs a look"), note)
    return Sign(_("Queue"), value, "good", _("keeps up"), note)


def _worker() -> Sign:
    try:
        beat = datetime.fromtimestamp((Path(settings.DATA_DIR) / HEARTBEAT_FILE).stat().st_mtime, UTC)
    except OSError:
        note = _("Start it with `manage.py worker`, or everything with `manage.py up`.")
        return Sign(_("Worker"), _("never seen on this machine"), "warn", _("not seen"), note)
    late = (clock.now() - beat).total_seconds() > LATE_BEATS * BEAT_EVERY_SECONDS
    value = _("last sign of life %(time)s") % {"time": formats.ago(beat)}
    return Sign(_("Worker"), value, "bad" if late else "good", _("silent") if late else _("runs"))


def _disk() -> Sign:
    usage = shutil.disk_usage(settings.DATA_DIR)
    value = _("%(free)s free of %(total)s") % {
        "free": formats.file_size(usage.free),
        "total": formats.file_size(usage.total),
    }
    if usage.free < FULL_DISK_BYTES:
        return Sign(
            _("Disk"), value, "bad", _("almost full"), _("Writes may be refused; what was committed is intact.")
        )
    if usage.free < LOW_DISK_BYTES:
        return Sign(_("Disk"), value, "warn", _("getting full"))
    return Sign(_("Disk"), value, "good", _("enough"))


def _backup() -> Sign:
    backup = newest_backup()
    if backup is None:
        note = _("Make one with `manage.py backup DEST`; it is consistent while the hub runs.")
        return Sign(_("Last backup"), _("none yet"), "warn", _("missing"), note)
    made_at = datetime.fromtimestamp(backup.stat().st_mtime, UTC)
    old = (clock.now() - made_at).days >= 7
    value = f"{formats.ago(made_at)} · {formats.file_size(backup.stat().st_size)}"
    return Sign(_("Last backup"), value, "warn" if old else "good", _("older than a week") if old else _("fresh"))


def _proxied_usage() -> Sign:
    lost, waiting = lost_record_count(), waiting_bytes()
    if lost:
        note = _("Their cost is missing in the ledger; the server's log says why.")
        value = ngettext("%(n)s response", "%(n)s responses", lost) % {"n": formats.count(lost)}
        return Sign(_("Proxied usage"), value, "bad", _("lost"), note)
    if waiting:
        return Sign(_("Proxied usage"), formats.file_size(waiting), "warn", _("waits for the ledger"))
    return Sign(_("Proxied usage"), _("all recorded"), "good", _("none waits"))


def newest_backup() -> Path | None:
    """Return the newest backup in the data folder's `backups`, or None."""
    folder = Path(settings.DATA_DIR) / "backups"
    files = [path for path in folder.glob("*") if path.is_file()] if folder.is_dir() else []
    return max(files, key=lambda path: path.stat().st_mtime, default=None)


def _facts() -> list[tuple[str, Any]]:
    return [
        (_("Version"), __version__),
        ("Django", django.get_version()),
        (_("Durability"), settings.DURABILITY),
        (_("Embedder"), settings.EMBEDDER),
        (_("Provider behind the proxy"), settings.ANTHROPIC_UPSTREAM),
    ]
