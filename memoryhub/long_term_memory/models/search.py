"""What search reads of memories, and what a recall leaves behind."""

from typing import Any

from django.db import models

from memoryhub.long_term_memory.models.memories import Memory
from memoryhub.workspaces.models import Session, Workspace


class EmbeddingModel(models.Model):
    """The name of a model that vectors were made with."""

    name = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.name


class RowKey(models.BigIntegerField):
    """A 64-bit key. On SQLite it is the table's own row number, so that rows lie in its order and need no index."""

    def db_type(self, connection: Any) -> str | None:
        return "integer" if connection.vendor == "sqlite" else super().db_type(connection)


class SearchDocument(models.Model):
    """What ranking reads of one memory. Times are seconds since 1970, so that a scope is scored without parsing.

    `terms` are 32-bit term numbers, `counts` three bytes for each: how often it stands in the text, in the subject,
    and (times ten) in date words and context. `vector` is int8.
    """

    key = RowKey(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    session_id = models.BigIntegerField(null=True)
    state = models.SmallIntegerField()
    trust = models.SmallIntegerField()
    kind = models.SmallIntegerField()
    created = models.FloatField()
    importance = models.FloatField()
    daily_loss = models.FloatField()
    floor = models.FloatField()
    idle_since = models.FloatField()
    archives_at = models.FloatField(null=True)
    expires_at = models.FloatField(null=True)
    valid_from = models.FloatField(null=True)
    valid_until = models.FloatField(null=True)
    superseded_at = models.FloatField(null=True)
    access_count = models.IntegerField()
    rating = models.SmallIntegerField(default=0)  # helpful minus harmful
    word_count = models.IntegerField()
    token_count = models.FloatField()
    is_question = models.BooleanField()
    has_context = models.BooleanField()
    terms = models.BinaryField()
    counts = models.BinaryField()
    vector = models.BinaryField(null=True)
    model = models.ForeignKey(EmbeddingModel, on_delete=models.SET_NULL, null=True, related_name="+", db_index=False)

    def __str__(self) -> str:
        return f"document {self.key}"


class RecallReceipt(models.Model):
    """One recall: who asked what, and what was returned."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="recall_receipts")
    public_id = models.CharField(max_length=64, unique=True)
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True, blank=True, related_name="recalls")
    query = models.TextField()
    scope = models.JSONField(default=dict)
    filters = models.JSONField(default=dict)
    weights = models.JSONField(default=dict)
    result_count = models.IntegerField(default=0)
    tokens = models.IntegerField(default=0)
    actor_kind = models.CharField(max_length=10, blank=True, default="")
    actor_label = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["workspace", "-created_at", "-id"], name="recall_recent")]

    def __str__(self) -> str:
        return f"{self.public_id} {self.query[:40]}"


class RecalledMemory(models.Model):
    """One line of a receipt."""

    receipt = models.ForeignKey(RecallReceipt, on_delete=models.CASCADE, related_name="items")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="recalls", db_index=False)
    rank = models.IntegerField()
    score = models.FloatField()
    version = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["memory", "-id"], name="recalled_memory_recent")]

    def __str__(self) -> str:
        return f"{self.memory_id} at {self.rank}"


class MemoryRating(models.Model):
    """One judgement on a recalled memory."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="ratings")
    helpful = models.BooleanField()
    reason = models.CharField(max_length=500, blank=True, default="")
    actor_kind = models.CharField(max_length=10, blank=True, default="")
    actor_label = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.memory_id} {'helpful' if self.helpful else 'harmful'}"


class CarriedMemory(models.Model):
    """A request that carried a memory in its body, found by the marks that a rendered memory has."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="carried", db_index=False)
    record_id = models.BigIntegerField()  # the ledger's row; rooms hold no keys into each other
    version = models.IntegerField()
    place = models.CharField(max_length=8)  # tools, system or messages
    path = models.CharField(max_length=200)
    tokens = models.IntegerField()
    session = models.CharField(max_length=200, blank=True, default="")
    model = models.CharField(max_length=200, blank=True, default="")
    occurred_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["memory", "record_id"], name="memory_is_carried_once_by_a_request")
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.path} of {self.record_id}"
