"""What keeps memories in order: the decay policy, and the questions that wait for a person."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memoryhub.long_term_memory.models.memories import Memory
from memoryhub.workspaces.models import Workspace


class DecayRules(models.Model):
    """A workspace's decay policy as it was saved; no row means the defaults."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, related_name="decay_rules")
    base = models.JSONField(default=dict)
    by_kind = models.JSONField(default=dict)
    by_tag = models.JSONField(default=dict)
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"decay rules of {self.workspace_id}"


class ReviewKind(models.TextChoices):
    DUPLICATE = "duplicate", _("Near duplicate")
    CONTRADICTION = "contradiction", _("Contradiction")
    QUARANTINED = "quarantined", _("Quarantined write")
    EXTRACTED = "extracted", _("Extracted candidate")
    FADING = "fading", _("Fading but important")


class ReviewState(models.TextChoices):
    OPEN = "open", _("Open")
    ACCEPTED = "accepted", _("Accepted")
    REJECTED = "rejected", _("Rejected")


class ReviewItem(models.Model):
    """A question to a person. `other` is the older memory of a pair; `candidate` is a memory that is not stored yet."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="review_items")
    public_id = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=13, choices=ReviewKind.choices)
    state = models.CharField(max_length=8, choices=ReviewState.choices, default=ReviewState.OPEN)
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, null=True, blank=True, related_name="review_items")
    other = models.ForeignKey(Memory, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    candidate: Any = models.JSONField(null=True, blank=True)
    score = models.FloatField(default=0)
    decision = models.CharField(max_length=20, blank=True, default="")
    decided_by = models.CharField(max_length=200, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "memory", "other"],
                condition=Q(state="open", other__isnull=False),
                name="review_pair_is_asked_once",
            ),
            models.UniqueConstraint(
                fields=["kind", "memory"],
                condition=Q(state="open", other__isnull=True, memory__isnull=False),
                name="review_memory_is_asked_once",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "state", "-created_at", "-id"], name="review_recent"),
            models.Index(fields=["workspace", "state", "kind", "-created_at", "-id"], name="review_of_a_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} {self.kind} {self.state}"
