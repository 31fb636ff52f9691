"""What a change set did to the workspace's prices, as the log keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from memoryhub.audit.models import AuditEvent, ChangeSet
from memoryhub.prompt_cache.models import Price

SUBJECT = "price"
RATES = ("input_rate", "cache_write_5m_rate", "cache_write_1h_rate", "cache_read_rate", "output_rate")
PriceForm = dict[str, Any]  # valid_until as ISO text or None, the rates in pico-USD per token, the note


@dataclass(frozen=True, slots=True)
class PriceChange:
    """One entry of the workspace's book before and after a change; None where it was not there."""

    model: str
    valid_from: date
    prompt_tokens_above: int
    before: PriceForm | None
    after: PriceForm | None

    def as_json(self) -> dict[str, Any]:
        return {
            "valid_from": self.valid_from.isoformat(),
            "prompt_tokens_above": self.prompt_tokens_above,
            "before": self.before,
            "after": self.after,
        }


def form_of(price: Price | None) -> PriceForm | None:
    """The part of an entry that a change can change."""
    if price is None:
        return None
    until = price.valid_until
    rates = {name: getattr(price, name) for name in RATES}
    return {"valid_until": until.isoformat() if until else None, **rates, "note": price.note}


def list_price_changes(change_set: ChangeSet) -> list[PriceChange]:
    """The entries that a change set touched, by model; empty for a change of something else."""
    events = AuditEvent.objects.filter(change_set=change_set, subject_type=SUBJECT).order_by("id")
    return [
        PriceChange(
            event.detail.get("model", event.subject_id),
            date.fromisoformat(change["valid_from"]),
            change["prompt_tokens_above"],
            change["before"],
            change["after"],
        )
        for event in events
        for change in event.detail.get("changes", ())
    ]
