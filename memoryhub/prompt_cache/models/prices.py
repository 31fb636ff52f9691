"""A workspace's own entries in the price book; the list prices are data in fixtures/prices/."""

from __future__ import annotations

from datetime import date

from django.db import models
from django.db.models import F, Q

from memoryhub.workspaces.models import Workspace

ALWAYS = date(2000, 1, 1)


class Price(models.Model):
    """The price of a model from a day on, for this workspace. Rates are pico-USD per token (1 USD per million = 1,000,000)."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="prices", db_index=False)
    model = models.CharField(max_length=200)
    valid_from = models.DateField(default=ALWAYS)
    valid_until = models.DateField(null=True, blank=True)
    prompt_tokens_above = models.BigIntegerField(default=0)
    input_rate = models.BigIntegerField()
    cache_write_5m_rate = models.BigIntegerField()
    cache_write_1h_rate = models.BigIntegerField()
    cache_read_rate = models.BigIntegerField()
    output_rate = models.BigIntegerField()
    note = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "model", "valid_from", "prompt_tokens_above"], name="price_is_unique"
            ),
            models.CheckConstraint(
                condition=Q(valid_until=None) | Q(valid_until__gte=F("valid_from")), name="price_ends_after_it_begins"
            ),
            models.CheckConstraint(
                condition=Q(
                    prompt_tokens_above__gte=0,
                    input_rate__gte=0,
                    cache_write_5m_rate__gte=0,
                    cache_write_1h_rate__gte=0,
                    cache_read_rate__gte=0,
                    output_rate__gte=0,
                ),
                name="price_is_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.valid_from}"
