"""What else a hub of two weeks has: jobs that ended well or badly, keys, a filter that the team saved."""

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from memoryhub.audit.models import ChangeSet
from memoryhub.common import ids
from memoryhub.flows.demo.stage import DAYS, Stage, moment_of
from memoryhub.long_term_memory.services.saved_filters import save_filter
from memoryhub.webhooks.models import WebhookDelivery
from memoryhub.webhooks.posting import Outcome
from memoryhub.webhooks.services import create_webhook, note_outcome, pause_webhook
from memoryhub.work import services as work
from memoryhub.workspaces.services import create_api_key, revoke_api_key

FILTERS = (
    ("Fading this week", "state=fading"),
    ("Runbooks", "agent=ops&kind=procedural"),
    ("李明的偏好", "user=%E6%9D%8E%E6%98%8E"),
)


def tell_errands(stage: Stage) -> None:
    """Leave the traces of two weeks in the hub's own pages."""
    _tell_jobs(stage)
    _tell_keys(stage)
    _tell_webhook(stage)
    for name, query in FILTERS:
        with moment_of(stage, stage.ago(3)):
            save_filter(workspace=stage.workspace, actor=stage.actor("ana"), name=name, query=query)


def _tell_jobs(stage: Stage) -> None:
    for day in range(DAYS - 1, -1, -1):
        at = stage.morning(day, 3.0)
        _job(stage, "decay", at, seconds=0.4, result={"fading": 2 + day % 4, "archived": day % 2, "forgotten": 0})
    transcripts = {"files": 3, "lines": 4120, "records": {"created": 318, "updated": 0, "unchanged": 41}}
    _job(stage, "import_transcripts", stage.ago(6.2), seconds=2.1, result=transcripts, total=4120)
    _job(stage, "embed_memories", stage.ago(5.1), seconds=0.8, result={"embedded": 264}, total=264)
    _job(stage, "sweep_tool_results", stage.ago(0.4), seconds=0.1, result={"expired": 88})
    refused = "EmbedderUnavailable: the embedder at http://localhost:11434 refused the connection"
    _job(stage, "embed_memories", stage.ago(5.3), seconds=1.5, error=refused)


def _job(
    stage: Stage,
    kind: str,
    at: datetime,
    *,
    seconds: float,
    result: dict[str, Any] | None = None,
    error: str = "",
    total: int = 0,
) -> None:
    """A job that was done, or given up, at some moment; whoever hears the bell finds it ended."""
    with transaction.atomic(), moment_of(stage, at):
        queued = work.enqueue_job(workspace=stage.workspace, kind=kind, args={})
        job = work.take_lease(job_id=queued.pk)
        if job is None:
            raise RuntimeError(f"the job {queued.public_id} could not be taken")
        if total:
            work.report_progress(job, total, total)
        with moment_of(stage, at + timedelta(seconds=seconds)):
            if error:
                work.fail_job(job=job, error=error, retry=False)
            else:
                work.finish_job(job=job, result=result)


def _tell_webhook(stage: Stage) -> None:
    """A webhook that took two messages and refused one, and is paused since: the demo calls nobody."""
    ana = stage.actor("ana")
    with moment_of(stage, stage.ago(6)):
        webhook, _ = create_webhook(
            workspace=stage.workspace,
            actor=ana,
            url="https://chat.lantern-tea.example/hooks/memories",
            note="#shop-memory",
            events=["memory.created", "memory.removed"],
        )
        pause_webhook(webhook=webhook, actor=ana)
    told = (
        (5.0, "memory.created", "remember", Outcome(200, 84.0)),
        (4.9, "memory.created", "remember", Outcome(200, 71.0)),
        (3.0, "memory.removed", "forget", Outcome(503, 312.0, "status", "maintenance until 18:00")),
    )
    for days, event, action, outcome in told:
        with moment_of(stage, stage.ago(days)):
            written = ChangeSet.objects.filter(
                workspace=stage.workspace, action=action, created_at__lte=stage.ago(days)
            )
            delivery = WebhookDelivery.objects.create(
                webhook=webhook,
                public_id=ids.new_id("whd"),
                event=event,
                change_set=written.order_by("-created_at", "-id").first(),
                batch=ids.new_id("whb"),
                created_at=stage.ago(days),
            )
            note_outcome(delivery=delivery, outcome=outcome, is_last=True)


def _tell_keys(stage: Stage) -> None:
    """A key that ends soon, and one that was taken back; the tokens are seen by nobody."""
    with moment_of(stage, stage.ago(9)):
        create_api_key(
            workspace=stage.workspace,
            name="grafana (read only)",
            scopes=["usage:read"],
            expires_at=stage.now + timedelta(days=21),
            created_by="王梅",
        )
        lost, _ = create_api_key(workspace=stage.workspace, name="tom's old laptop", created_by="tom")
    with moment_of(stage, stage.ago(2)):
        revoke_api_key(workspace=stage.workspace, key_id=lost.pk)
