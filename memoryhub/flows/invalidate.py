"""Announcing a change to every room: log it in order, drop what it touches, tell the streams.

Judging is low (invalidation/strategies), announcing is here. Today one room drops things: tool results.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from memoryhub.audit.services import record_event
from memoryhub.common import clock
from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.models import InvalidationRecord
from memoryhub.invalidation.services import Announcement, open_epoch, record_invalidation, record_unknown_write
from memoryhub.session_cache.services import invalidate as tool_results
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an invalidation did, or would do (no record)."""

    matched: int
    invalidated: int
    record: InvalidationRecord | None = None


def preview_invalidation(*, workspace: Workspace, selector: Selector) -> Outcome:
    """Return how much a change would drop, without dropping or logging anything."""
    return Outcome(tool_results.count_selected(workspace=workspace, selector=selector), 0)


def announce(*, workspace: Workspace, announcement: Announcement) -> Outcome:
    """Announce a change, in one transaction with its log line.

    It is logged even when it drops nothing: a value that is being computed right now may be touched by it.
    """
    with write_transaction():
        epoch = open_epoch(workspace)
        dropped = tool_results.drop_selected(workspace=workspace, selector=announcement.selector)
        record = record_invalidation(
            workspace=workspace, epoch=epoch, announcement=announcement, matched=dropped, invalidated=dropped
        )
        record_event(
            workspace=workspace,
            actor=announcement.actor,
            action="tool_results.invalidated",
            subject_type="invalidation",
            subject_id=record.public_id,
            detail={
                "selector": record.selector,
                "reason": record.reason,
                "strategy": record.strategy,
                "invalidated": dropped,
            },
        )
    return Outcome(dropped, dropped, record)


def announce_write(
    *,
    workspace: Workspace,
    tool: str,
    changes: Iterable[str],
    actor: Actor,
    door: str,
    failed: bool = False,
    anything: bool = False,
) -> int:
    """Announce what a tool's run makes invalid, as its policy declares; a failed run may have changed it too.

    `anything`: the tool has no policy, or one that says so. Then every result that depends on files is asked for a
    proof, unless nothing is stored or being computed that could be asked.
    """
    dropped = 0
    if anything:
        with write_transaction():
            if tool_results.has_something(workspace=workspace, now=clock.now()):
                record_unknown_write(workspace=workspace, tool=tool, actor=actor, door=door, failed=failed)
    for name in changes:
        reason = f"{tool} failed" if failed else f"{tool} ran"
        change = Announcement(Selector(tool_or_tag=name), actor, reason=reason, strategy="event", door=door)
        dropped += announce(workspace=workspace, announcement=change).invalidated
    return dropped
