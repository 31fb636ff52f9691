"""The room's reads.

build_report        rows by group, totals, unpriced models: what the API and the CSV show
summarize_costs     the report page: daily series, comparison with the days before, the dearest groups
overview_costs      the overview's figures
sum_waste           writes that nobody read, and their premium; and what the cache saves in waiting
list_prices         the price book, with the workspace's own entries marked
list_requests       the requests behind the sums, one by one; get_request, list_billed_parts   one of them, line by line
"""

from memoryhub.prompt_cache.queries.prices import ListedPrice, list_known_models, list_prices, price_book_version
from memoryhub.prompt_cache.queries.records import (
    get_request,
    latest_record_at,
    list_billed_parts,
    list_requests,
    list_unpriced_models,
)
from memoryhub.prompt_cache.queries.report import (
    CostSummary,
    DayCosts,
    PeriodFigures,
    Report,
    ReportRow,
    build_report,
    overview_costs,
    summarize_costs,
)
from memoryhub.prompt_cache.queries.sums import GROUPS, Span, Sums, UnpricedModel
from memoryhub.prompt_cache.queries.waste import Waste, sum_waste

__all__ = [
    "GROUPS",
    "CostSummary",
    "DayCosts",
    "ListedPrice",
    "PeriodFigures",
    "Report",
    "ReportRow",
    "Span",
    "Sums",
    "UnpricedModel",
    "Waste",
    "build_report",
    "get_request",
    "latest_record_at",
    "list_billed_parts",
    "list_known_models",
    "list_prices",
    "list_requests",
    "list_unpriced_models",
    "overview_costs",
    "price_book_version",
    "sum_waste",
    "summarize_costs",
]
