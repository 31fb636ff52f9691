"""Shapes of the review inbox."""

from collections.abc import Iterable
from typing import Annotated, Any

from ninja import Schema
from pydantic import StringConstraints

from memoryhub.api.schemas.base import GivenTime, InShape, UtcTime
from memoryhub.api.schemas.memories import Content, Kind, MemoryOut, Names, Share, ShortText, Tags
from memoryhub.long_term_memory.models import ReviewItem


class ReviewOut(Schema):
    id: str
    kind: str
    state: str
    score: float
    memory: MemoryOut | None
    other: MemoryOut | None
    candidate: dict[str, Any] | None
    decisions: list[str]
    decision: str | None
    decided_by: str | None
    decided_at: UtcTime | None
    created_at: UtcTime

    @staticmethod
    def of(item: ReviewItem, decisions: Iterable[str]) -> "ReviewOut":
        return ReviewOut(
            id=item.public_id,
            kind=item.kind,
            state=item.state,
            score=item.score,
            memory=MemoryOut.of(item.memory) if item.memory else None,
            other=MemoryOut.of(item.other) if item.other else None,
            candidate=item.candidate,
            decisions=list(decisions),
            decision=item.decision or None,
            decided_by=item.decided_by or None,
            decided_at=item.decided_at,
            created_at=item.created_at,
        )


class ReviewPage(Schema):
    items: list[ReviewOut]
    next_cursor: str | None


class DecisionIn(InShape):
    """A decision; `valid_from` is for keeping both of a contradiction, the others change an extracted candidate."""

    decision: Annotated[str, StringConstraints(max_length=20)]
    valid_from: GivenTime | None = None
    content: Content | None = None
    subject: ShortText | None = None
    kind: Kind | None = None
    importance: Share | None = None
    tags: Tags | None = None
    reason: Names = ""

    def options(self) -> dict[str, Any]:
        return self.dict(exclude={"decision", "reason"}, exclude_none=True)
