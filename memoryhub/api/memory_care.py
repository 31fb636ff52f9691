"""Care for many memories: bulk edits, the decay run and its policy."""

from typing import Any

from ninja import Router

from memoryhub.api.auth import ApiRequest, requires
from memoryhub.api.memories import writer_of
from memoryhub.api.schemas.base import as_utc_text
from memoryhub.api.schemas.memory_care import (
    BulkIn,
    BulkOut,
    DecayIn,
    DecayOut,
    PolicyIn,
    PolicyOut,
    PolicySaved,
    SkippedOut,
)
from memoryhub.common import clock
from memoryhub.long_term_memory import queries, services
from memoryhub.long_term_memory.domain.decay import PolicyBook

router = Router(tags=["Memories"])


@router.post(
    "/memories/bulk",
    auth=requires("memories:write"),
    response=BulkOut,
    operation_id="bulkEditMemories",
    summary="Do one thing to all memories that match a filter",
)
def bulk_edit(request: ApiRequest, body: BulkIn) -> Any:
    """One change set. `dry_run` says exactly what would happen; an empty filter is refused."""
    result = services.bulk_edit(
        writer=writer_of(request, body.reason),
        wanted=body.filter.wanted(),
        action=body.action.action(),
        dry_run=body.dry_run,
    )
    return BulkOut(
        matched=result.matched,
        changed=result.changed,
        skipped=[SkippedOut(**row) for row in result.skipped],
        change_set=result.change_set.public_id if result.change_set else None,
        dry_run=body.dry_run,
    )


@router.post(
    "/memories/decay",
    auth=requires("memories:write"),
    response=DecayOut,
    operation_id="runDecay",
    summary="Let memories fade as far as their curves have fallen",
)
def run_decay(request: ApiRequest, body: DecayIn) -> Any:
    """`at` looks ahead. Running it twice changes nothing more; importance is never touched, strength is.

    The run is of the whole workspace: a bound key is refused.
    """
    request.principal.require_unbound()
    moment = body.at or clock.now()
    report = services.run_decay(writer=writer_of(request), at=moment, dry_run=body.dry_run)
    return DecayOut(
        dry_run=body.dry_run,
        at=moment,
        fading=report.fading,
        archived=report.archived,
        forgotten=report.forgotten,
        items=[{**item, "at": as_utc_text(item["at"])} for item in report.items],
        change_set=report.change_set.public_id if report.change_set else None,
    )


@router.get(
    "/memories/policy",
    auth=requires("memories:read"),
    response=PolicyOut,
    operation_id="getDecayPolicy",
    summary="The decay policy in force",
)
def get_policy(request: ApiRequest) -> Any:
    """The workspace's policy, with its exceptions by kind and by tag."""
    return PolicyOut(**_policy(queries.get_policy_book(request.principal.workspace)))


@router.put(
    "/memories/policy",
    auth=requires("memories:write"),
    response=PolicySaved,
    operation_id="saveDecayPolicy",
    summary="Change the decay policy",
)
def save_policy(request: ApiRequest, body: PolicyIn) -> Any:
    """`dry_run` says how many memories would change state. The rules and what they move are one change set.

    The policy holds for everybody here: a bound key is refused.
    """
    request.principal.require_unbound()
    saved = services.save_policy(writer=writer_of(request, body.reason), changes=body.changes(), dry_run=body.dry_run)
    return PolicySaved(
        **_policy(saved.book),
        dry_run=body.dry_run,
        matched=saved.matched,
        would_change=sum(saved.changes.values()),
        changes=saved.changes,
        items=saved.items,
        change_set=saved.change_set.public_id if saved.change_set else None,
    )


def _policy(book: PolicyBook) -> dict[str, Any]:
    return {
        **queries.policy_as_dict(book.base),
        "by_kind": plain_exceptions(book.by_kind),
        "by_tag": plain_exceptions(book.by_tag),
    }


def plain_exceptions(exceptions: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Exceptions as JSON values."""
    return {
        name: {key: sorted(value) if isinstance(value, frozenset) else value for key, value in fields.items()}
        for name, fields in exceptions.items()
    }
