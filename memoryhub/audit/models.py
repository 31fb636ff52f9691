"""Change sets, audit events and remembered replies."""

from django.db import models

from memoryhub.workspaces.models import Workspace


class ActorFields(models.Model):
    """Who did it, kept as words, so that a log line outlives the key or person."""

    actor_kind = models.CharField(max_length=10)
    actor_id = models.CharField(max_length=64)
    actor_label = models.CharField(max_length=200)

    class Meta:
        abstract = True


class ChangeSet(ActorFields):
    """One deliberate change to stored data, however many rows it touched."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="change_sets")
    public_id = models.CharField(max_length=32, unique=True)
    action = models.CharField(max_length=64)
    reason = models.CharField(max_length=500, blank=True)
    door = models.CharField(max_length=20, blank=True)
    subject_count = models.IntegerField(default=0)
    reverts = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="reverted_by")
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="change_set_recent"),
            models.Index(fields=["workspace", "actor_kind", "-created_at", "-id"], name="change_set_by_actor_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} {self.action}"


class AuditEvent(ActorFields):
    """One line of the log."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="audit_events")
    change_set = models.ForeignKey(ChangeSet, on_delete=models.SET_NULL, null=True, blank=True, related_name="events")
    action = models.CharField(max_length=64)
    subject_type = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["workspace", "-created_at", "-id"], name="audit_event_recent"),
            models.Index(fields=["workspace", "subject_type", "subject_id"], name="audit_event_subject"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_type} {self.subject_id}"


class IdempotentReply(models.Model):
    """The answer to one request with an Idempotency-Key; without `status` it is still being worked on."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="idempotent_replies")
    owner = models.CharField(max_length=80)
    key = models.CharField(max_length=255)
    request_sha256 = models.CharField(max_length=64)
    status = models.IntegerField(null=True, blank=True)
    content_type = models.CharField(max_length=100, blank=True)
    body = models.BinaryField(null=True, blank=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "owner", "key"], name="idempotency_key_is_unique")]

    def __str__(self) -> str:
        return f"{self.owner} {self.key} -> {self.status}"
