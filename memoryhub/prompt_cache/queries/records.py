"""Single records of the ledger."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Q, QuerySet, Sum

from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.queries.sums import UnpricedModel
from memoryhub.workspaces.models import Workspace


def list_records(
    workspace: Workspace, *, session: str = "", chain: str = "", project: str = "", model: str = ""
) -> QuerySet[UsageRecord]:
    """Records of the workspace, narrowed; order and cut them where they are shown (occurred_at, id)."""
    records = UsageRecord.objects.of(workspace)
    for name, value in (("session", session), ("chain", chain), ("project", project), ("model", model)):
        if value:
            records = records.filter(**{name: value})
    return records


def latest_record_at(workspace: Workspace) -> datetime | None:
    """When usage last arrived: "sent something? yes, three seconds ago"."""
    return UsageRecord.objects.of(workspace).order_by("-id").values_list("created_at", flat=True).first()


def list_unpriced_models(workspace: Workspace) -> list[UnpricedModel]:
    """Every model of the ledger that has usage without a price, the largest first."""
    rows = (
        UsageRecord.objects.of(workspace)
        .unpriced()
        .values_list("model")
        .annotate(
            response_count=Count("id", filter=Q(part=0)),
            sum_input=Sum("input_tokens"),
            sum_write_5m=Sum("cache_write_5m_tokens"),
            sum_write_1h=Sum("cache_write_1h_tokens"),
            sum_read=Sum("cache_read_tokens"),
            sum_output=Sum("output_tokens"),
        )
    )
    found = [UnpricedModel(model, sum(tokens), requests) for model, requests, *tokens in rows]
    return sorted(found, key=lambda one: (-one.tokens, one.model))


def count_unpriced_models(workspace: Workspace) -> int:
    """How many models have usage without a price."""
    return UsageRecord.objects.of(workspace).unpriced().values("model").distinct().count()
