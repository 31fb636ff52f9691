"""The price book as people and agents read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from memoryhub.prompt_cache.domain.pricing import PriceBook, PriceEntry
from memoryhub.prompt_cache.models import Price
from memoryhub.prompt_cache.models.prices import ALWAYS
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.workspaces.models import Workspace


def price_book_version(workspace: Workspace) -> str:
    """A stable id that changes exactly when a price or a rule of the workspace's book changes."""
    return get_price_book(workspace).version


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """One entry of the book. `price_id` is set for the workspace's own, which alone can be changed or removed."""

    entry: PriceEntry
    price_id: int | None = None
    note: str = ""

    @property
    def is_own(self) -> bool:
        return self.price_id is not None


def list_prices(workspace: Workspace, *, model: str = "") -> list[ListedPrice]:
    """The workspace's own entries and the list's, by model, the newest first, small prompts before large ones."""
    own = {
        (price.model, price.valid_from, price.prompt_tokens_above): price
        for price in Price.objects.filter(workspace=workspace)
    }
    listed = [_listed(entry, own) for entry in get_price_book(workspace).entries if not model or entry.model == model]
    return sorted(listed, key=_price_order)


def _listed(entry: PriceEntry, own: dict[tuple[str, date, int], Price]) -> ListedPrice:
    if entry.source != "workspace":
        return ListedPrice(entry)
    price = own[entry.model, entry.valid_from or ALWAYS, entry.prompt_tokens_above]
    return ListedPrice(entry, price.pk, price.note)


def _price_order(listed: ListedPrice) -> tuple[str, bool, int, int]:
    entry = listed.entry
    return entry.model, not listed.is_own, -(entry.valid_from or date.min).toordinal(), entry.prompt_tokens_above


def list_known_models(workspace: Workspace) -> list[str]:
    """Every model that the book has a price for."""
    book: PriceBook = get_price_book(workspace)
    return sorted({entry.model for entry in book.entries})
