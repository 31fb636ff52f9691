"""The Job row."""

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memoryhub.workspaces.models import Workspace


class JobState(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    FAILED = "failed", _("Failed, will be tried again")
    DONE = "done", _("Done")
    DEAD = "dead", _("Dead")


class JobQuerySet(models.QuerySet["Job"]):
    def due(self, now: datetime) -> "JobQuerySet":
        """Jobs that a worker may take: waiting ones whose time has come, and running ones whose lease ran out."""
        return self.filter(
            Q(state__in=[JobState.QUEUED, JobState.FAILED], run_after__lte=now)
            | Q(state=JobState.RUNNING, lease_until__lt=now)
        )

    def unfinished(self) -> "JobQuerySet":
        return self.filter(state__in=[JobState.QUEUED, JobState.RUNNING, JobState.FAILED])


class Job(models.Model):
    """A piece of later work."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, null=True, blank=True, related_name="jobs")
    public_id = models.CharField(max_length=32, unique=True)
    kind = models.CharField(max_length=40)
    args = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=JobState.choices, default=JobState.QUEUED)
    run_after = models.DateTimeField()
    attempts = models.IntegerField(default=0)
    max_attempts = models.IntegerField(default=5)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_token = models.CharField(max_length=32, blank=True)
    idempotency_key = models.CharField(max_length=200, null=True, blank=True, unique=True)
    progress_done = models.BigIntegerField(default=0)
    progress_total = models.BigIntegerField(default=0)
    result = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(state__in=JobState.values), name="job_state_is_known"),
            models.CheckConstraint(
                condition=~Q(state=JobState.RUNNING) | Q(lease_until__isnull=False), name="running_job_has_a_lease"
            ),
        ]
        indexes = [
            models.Index(
                fields=["run_after", "id"], name="job_waiting", condition=Q(state__in=["queued", "running", "failed"])
            ),
            models.Index(fields=["workspace", "-created_at", "-id"], name="job_recent"),
            models.Index(fields=["workspace", "state", "-created_at", "-id"], name="job_of_a_state"),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} {self.kind} {self.state}"
