"""The log of invalidations and the count that orders them."""

from datetime import datetime

from django.db import models

from memoryhub.audit.models import ChangeSet
from memoryhub.workspaces.models import Workspace


class InvalidationEpoch(models.Model):
    """How many invalidations a workspace has seen. Its row is the lock that keeps them in one order."""

    workspace = models.OneToOneField(
        Workspace, on_delete=models.CASCADE, primary_key=True, related_name="invalidation_epoch"
    )
    epoch = models.BigIntegerField(default=0)
    # The last run of a tool that may have changed any file: what is older has to prove its files again.
    doubt_epoch = models.BigIntegerField(default=0)
    doubt_tool = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"epoch {self.epoch} of workspace {self.workspace_id}"


class InvalidationRecordQuerySet(models.QuerySet["InvalidationRecord"]):
    def after(self, epoch: int) -> "InvalidationRecordQuerySet":
        """Records that came after the epoch, the oldest first."""
        return self.filter(epoch__gt=epoch).order_by("epoch")

    def older_than(self, moment: datetime) -> "InvalidationRecordQuerySet":
        return self.filter(created_at__lt=moment)


class InvalidationRecord(models.Model):
    """One announced change: what was selected, how much it hit, why, by whom, through which strategy."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invalidations", db_index=False)
    public_id = models.CharField(max_length=40, unique=True)
    epoch = models.BigIntegerField()
    selector = models.JSONField()
    strategy = models.CharField(max_length=16)
    reason = models.CharField(max_length=500, blank=True)
    matched = models.PositiveIntegerField(default=0)
    invalidated = models.PositiveIntegerField(default=0)
    actor_kind = models.CharField(max_length=16)
    actor_id = models.CharField(max_length=200)
    actor_label = models.CharField(max_length=200)
    door = models.CharField(max_length=32, blank=True)
    change_set = models.ForeignKey(ChangeSet, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField()

    objects = InvalidationRecordQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "epoch"], name="invalidation_epoch_is_unique")]
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="invalidation_recent")]

    def __str__(self) -> str:
        return f"{self.public_id} (epoch {self.epoch})"


class WatchedRoot(models.Model):
    """A folder that a watcher of this hub follows: since when without a gap, and its last sign of life."""

    path = models.CharField(max_length=1000, unique=True)
    since = models.DateTimeField()
    alive_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.path} since {self.since:%Y-%m-%d %H:%M:%S}"
