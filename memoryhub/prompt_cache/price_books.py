"""Which price book holds for a workspace: the list prices of this version, and the workspace's own entries over them."""

from __future__ import annotations

import json
from functools import lru_cache

from django.conf import settings

from memoryhub.prompt_cache.domain.pricing import PriceBook, PriceEntry, Rates, read_price_book
from memoryhub.prompt_cache.models import Price
from memoryhub.workspaces.models import Workspace

LIST_PRICES = "fixtures/prices/anthropic.json"


@lru_cache(maxsize=1)
def list_price_book() -> PriceBook:
    """The list prices that come with this version of the hub."""
    return read_price_book(json.loads((settings.BASE_DIR / LIST_PRICES).read_text()))


def get_price_book(workspace: Workspace) -> PriceBook:
    """The prices that hold for a workspace."""
    own = tuple(map(_entry_of, Price.objects.filter(workspace=workspace).order_by("pk")))
    return _book_with(own) if own else list_price_book()


@lru_cache(maxsize=64)
def _book_with(own: tuple[PriceEntry, ...]) -> PriceBook:
    return list_price_book().with_entries(own)


def _entry_of(price: Price) -> PriceEntry:
    return PriceEntry(
        model=price.model,
        rates=Rates(
            input=price.input_rate,
            cache_write_5m=price.cache_write_5m_rate,
            cache_write_1h=price.cache_write_1h_rate,
            cache_read=price.cache_read_rate,
            output=price.output_rate,
        ),
        valid_from=price.valid_from,
        valid_until=price.valid_until,
        prompt_tokens_above=price.prompt_tokens_above,
        source="workspace",
    )
