"""What the doctor keeps of a request, and what it found."""

from datetime import datetime

from django.db import models

from memoryhub.prompt_cache.models.ledger import UsageRecord
from memoryhub.workspaces.models import Workspace


class RequestFingerprint(models.Model):
    """Hashes and lengths of a request's blocks; for at most 65 minutes also its body, to compare the next one with."""

    record = models.OneToOneField(UsageRecord, on_delete=models.CASCADE, primary_key=True, related_name="fingerprint")
    packed = models.BinaryField()
    conversation = models.CharField(max_length=32, blank=True)  # of the first message
    static = models.CharField(max_length=32, blank=True)  # of tools and system prompt
    kept_body = models.BinaryField(null=True)
    kept_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(
                fields=["kept_until"], name="kept_request_bodies", condition=models.Q(kept_until__isnull=False)
            ),
            models.Index(fields=["created_at"], name="request_fingerprint_age"),
            models.Index(fields=["conversation"], name="request_conversation"),
        ]

    def __str__(self) -> str:
        return f"fingerprint of record {self.record_id}"


class DiagnosisQuerySet(models.QuerySet["Diagnosis"]):
    def of(self, workspace: Workspace) -> "DiagnosisQuerySet":
        return self.filter(workspace=workspace)

    def between(self, start: datetime, end: datetime) -> "DiagnosisQuerySet":
        """Diagnoses of requests from `start` up to, but not including, `end`."""
        return self.filter(occurred_at__gte=start, occurred_at__lt=end)

    def reported(self) -> "DiagnosisQuerySet":
        """Misses that are large enough to be shown."""
        return self.filter(reported=True)

    def with_excerpts(self) -> "DiagnosisQuerySet":
        """Diagnoses that hold some of the requests' text."""
        return self.exclude(before="", after="")


MISS_CAUSES = "reported_miss_causes"


class Diagnosis(models.Model):
    """Why one recorded request missed the cache, or that it didn't. Beside the ledger's row, so that lists need no join."""

    record = models.OneToOneField(UsageRecord, on_delete=models.CASCADE, primary_key=True, related_name="diagnosis")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="diagnoses", db_index=False)
    previous = models.ForeignKey(UsageRecord, on_delete=models.SET_NULL, null=True, related_name="+")
    occurred_at = models.DateTimeField()
    session = models.CharField(max_length=200, blank=True)
    project = models.CharField(max_length=500, blank=True)
    model = models.CharField(max_length=200)
    verdict = models.CharField(max_length=5)
    cause = models.CharField(max_length=20)
    detail = models.CharField(max_length=10, blank=True)
    path = models.TextField(blank=True)
    kind = models.CharField(max_length=10, blank=True)
    offset = models.BigIntegerField(null=True)
    before = models.TextField(blank=True)  # excerpts: only where the workspace opted in
    after = models.TextField(blank=True)
    fix = models.TextField(blank=True)
    also = models.JSONField(default=list)
    basis = models.CharField(max_length=6)
    expected_tokens = models.BigIntegerField(default=0)
    read_tokens = models.BigIntegerField(default=0)
    missed_tokens = models.BigIntegerField(default=0)
    missed_pico = models.BigIntegerField(null=True)
    reported = models.BooleanField(default=False)
    provider_reason = models.CharField(max_length=200, blank=True)
    provider_saw_no_change = models.BooleanField(default=False)
    agrees = models.BooleanField(null=True)
    created_at = models.DateTimeField()

    objects = DiagnosisQuerySet.as_manager()

    class Meta:
        indexes = [
            # Both hold all that the sums over a range of days read, so that none of them visits the rows.
            models.Index(
                fields=[
                    "workspace",
                    "occurred_at",
                    "reported",
                    "verdict",
                    "missed_tokens",
                    "missed_pico",
                    "agrees",
                    "cause",
                    "provider_saw_no_change",
                    "provider_reason",
                ],
                name="diagnosis_times",
            ),
            models.Index(
                fields=["workspace", "occurred_at", "cause", "missed_pico", "missed_tokens", "session", "record"],
                name="reported_miss_times",
                condition=models.Q(reported=True),
            ),
            # Misses of one cause beside each other: their sums need no sorting.
            models.Index(
                fields=["workspace", "cause", "occurred_at", "missed_tokens", "missed_pico"],
                name=MISS_CAUSES,
                condition=models.Q(reported=True),
            ),
            models.Index(fields=["workspace", "session", "occurred_at"], name="diagnosis_session"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.cause} of record {self.record_id}"
