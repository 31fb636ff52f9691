"""Webhooks, and what each was or is to be told."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.workspaces.models import Workspace


class Webhook(models.Model):
    """An address that hears of a workspace's changes. Its secret is made from the pepper and the generation."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="webhooks")
    public_id = models.CharField(max_length=32, unique=True)
    url = models.CharField(max_length=2000)
    note = models.CharField(max_length=200, blank=True)
    events = models.JSONField(default=list)  # none named: all of them
    generation = models.PositiveIntegerField(default=1)
    active = models.BooleanField(default=True)
    failures = models.PositiveIntegerField(default=0)  # in a row
    paused_because = models.CharField(
        max_length=12, blank=True
    )  # the problem of the last attempt; empty: somebody did it
    created_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.public_id} {self.url}"


class DeliveryState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    DELIVERED = "delivered", _("Delivered")
    FAILED = "failed", _("Failed")


class WebhookDelivery(models.Model):
    """One message to one webhook. Its body is made when it is sent, from the line of the log that it tells of."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    public_id = models.CharField(max_length=32, unique=True)
    event = models.CharField(max_length=40)
    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, null=True, related_name="+")
    audit_event = models.ForeignKey(AuditEvent, on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    batch = models.CharField(max_length=32, db_index=True)  # those that one job tells, all of the same line of the log
    state = models.CharField(max_length=10, choices=DeliveryState.choices, default=DeliveryState.WAITING)
    attempts = models.PositiveIntegerField(default=0)
    status_code = models.PositiveIntegerField(null=True)
    problem = models.CharField(max_length=12, blank=True)
    detail = models.CharField(max_length=300, blank=True)
    took_ms = models.FloatField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["webhook", "-id"], name="webhook_delivery_newest")]

    def __str__(self) -> str:
        return f"{self.public_id} {self.event} {self.state}"
