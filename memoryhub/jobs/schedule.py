"""What is due by itself. Each period's job is queued once, however many workers ask, and also after an outage."""

from dataclasses import dataclass
from datetime import datetime

from memoryhub.common import clock
from memoryhub.work.models import Job
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace

MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Due:
    """A kind of job and how often it runs; per workspace, or once for the hub."""

    kind: str
    every_seconds: int
    per_workspace: bool = True

    def key(self, workspace_id: int | None, now: datetime) -> str:
        """Return the idempotency key of the period that `now` lies in."""
        return f"{self.kind}:{workspace_id or 'hub'}:{int(now.timestamp()) // self.every_seconds}:{self.every_seconds}"


SCHEDULE = (
    Due("housekeeping", HOUR, per_workspace=False),
    Due("backup", DAY, per_workspace=False),
    Due("tend_ledger", HOUR),
    Due("find_out", 10 * MINUTE),
    Due("forget_bodies", 5 * MINUTE, per_workspace=False),
    Due("decay", DAY),
    Due("sweep_tool_results", 5 * MINUTE, per_workspace=False),
    Due("collect_session_garbage", DAY, per_workspace=False),
)


def enqueue_due_jobs() -> int:
    """Queue the jobs of this period that are not queued yet and return how many."""
    now = clock.now()
    workspaces: list[Workspace] = list(Workspace.objects.order_by("id"))
    wanted: dict[str, tuple[Due, Workspace | None]] = {}
    for due in SCHEDULE:
        owners: list[Workspace | None] = [*workspaces] if due.per_workspace else [None]
        wanted |= {due.key(owner.pk if owner else None, now): (due, owner) for owner in owners}
    known = set(Job.objects.filter(idempotency_key__in=wanted).values_list("idempotency_key", flat=True))
    for key in wanted.keys() - known:
        due, owner = wanted[key]
        enqueue_job(workspace=owner, kind=due.kind, idempotency_key=key)
    return len(wanted.keys() - known)
