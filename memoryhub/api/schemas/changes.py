"""Shapes of change sets."""

from ninja import Schema
from pydantic import Field

from memoryhub.api.schemas.base import InShape, UtcTime
from memoryhub.api.schemas.memories import Names
from memoryhub.api.schemas.memory_care import SkippedOut
from memoryhub.audit.models import ChangeSet
from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.services.repricing import Repricing


class ChangeSetOut(Schema):
    id: str
    action: str
    reason: str
    door: str
    actor: dict[str, str]
    subject_count: int
    reverts: str | None
    created_at: UtcTime

    @staticmethod
    def of(row: ChangeSet) -> "ChangeSetOut":
        return ChangeSetOut(
            id=row.public_id,
            action=row.action,
            reason=row.reason,
            door=row.door,
            actor={"kind": row.actor_kind, "id": row.actor_id, "label": row.actor_label},
            subject_count=row.subject_count,
            reverts=row.reverts.public_id if row.reverts else None,
            created_at=row.created_at,
        )


class ChangeSetPage(Schema):
    items: list[ChangeSetOut]
    next_cursor: str | None


class RevertIn(InShape):
    force: bool = False
    dry_run: bool = False
    reason: Names = ""


class RepricedByRevertOut(Schema):
    """What going back to the earlier prices does to the ledger."""

    records: int
    cost_before_usd: str
    cost_after_usd: str
    later: int = Field(description="Records that a job still prices; the amounts are those of the newest ones.")

    @staticmethod
    def of(repricing: Repricing) -> "RepricedByRevertOut":
        return RepricedByRevertOut(
            records=repricing.records,
            cost_before_usd=money.usd_text(repricing.cost_before_pico),
            cost_after_usd=money.usd_text(repricing.cost_after_pico),
            later=repricing.later,
        )


class RevertOut(Schema):
    reverted: int
    skipped: list[SkippedOut]
    change_set: str | None
    dry_run: bool
    repriced: RepricedByRevertOut | None = None
