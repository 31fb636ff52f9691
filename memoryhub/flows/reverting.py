"""Taking a change set back, whichever room it changed: memories, or the price book with the ledger that it prices."""

from dataclasses import dataclass, field

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.services.reverting import revert_change_set
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.prompt_cache.queries.price_changes import list_price_changes
from memoryhub.prompt_cache.services.price_reverting import revert_prices
from memoryhub.prompt_cache.services.repricing import Repricing
from memoryhub.workspaces.principals import Principal


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What went back, what was left alone and why; for prices also what that did to the ledger."""

    reverted: int
    skipped: list[dict[str, str]] = field(default_factory=list)  # {"id", "reason"}
    change_set: ChangeSet | None = None  # a second revert undoes this one
    repricing: Repricing | None = None


def take_back(
    *, principal: Principal, change_set_id: str, door: str, reason: str = "", force: bool = False, dry_run: bool = False
) -> TakenBack:
    """Take a change set back, as a change set of its own; what changed since is listed and left alone, unless forced.

    Prices are taken back by whoever may set them, everything else with the scope memories:write. A dry run says what would change.
    """
    workspace = principal.workspace
    change_set = ChangeSet.objects.filter(workspace=workspace, public_id=change_set_id).first()
    of_prices = change_set is not None and bool(list_price_changes(change_set))
    if change_set is not None and of_prices:
        principal.require_price_setter()
        prices = revert_prices(
            workspace=workspace,
            actor=principal.actor,
            change_set=change_set,
            reason=reason,
            door=door,
            force=force,
            dry_run=dry_run,
        )
        return TakenBack(prices.reverted, prices.skipped, prices.repricing.change_set, prices.repricing)
    principal.require("memories:write")
    writer = Writer.of(principal, door=door, reason=reason)
    memories = revert_change_set(writer=writer, change_set_id=change_set_id, force=force, dry_run=dry_run)
    return TakenBack(memories.reverted, memories.skipped, memories.change_set)
