"""The report as CSV: the same numbers, with the zone and the price book's version in front."""

from __future__ import annotations

import csv
import io
from typing import Any

from memoryhub.prompt_cache.domain import money
from memoryhub.prompt_cache.queries import Report, Sums

SUM_COLUMNS = (
    "requests",
    "input_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
    "output_tokens",
    "cost_usd",
    "nocache_usd",
    "net_saving_usd",
    "hit_rate",
)
# Spreadsheets run a cell that starts with one of these as a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def sum_values(sums: Sums) -> dict[str, Any]:
    """The figures of a row, money as decimal text."""
    return {
        "requests": sums.requests,
        "input_tokens": sums.input_tokens,
        "cache_write_5m_tokens": sums.cache_write_5m_tokens,
        "cache_write_1h_tokens": sums.cache_write_1h_tokens,
        "cache_read_tokens": sums.cache_read_tokens,
        "output_tokens": sums.output_tokens,
        "cost_usd": money.usd_text(sums.cost_pico),
        "nocache_usd": money.usd_text(sums.nocache_pico),
        "net_saving_usd": money.usd_text(sums.net_saving_pico),
        "hit_rate": sums.hit_rate,
    }


def report_csv(report: Report) -> str:
    """The whole report: two lines of header, the rows, and the models without a price as rows without money."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(["# time zone", report.time_zone, "price book version", report.price_book_version])
    writer.writerow([*report.group_by, *SUM_COLUMNS])
    for row in report.rows:
        keys = [safe_cell(row.keys[name]) for name in report.group_by]
        figures = sum_values(row.sums)
        writer.writerow([*keys, *("" if figures[name] is None else figures[name] for name in SUM_COLUMNS)])
    for unpriced in report.unpriced:
        writer.writerow(["# unpriced", safe_cell(unpriced.model), "tokens", unpriced.tokens])
    if report.excluded_count:
        writer.writerow(["# left out because they can't be right", report.excluded_count])
    return text.getvalue()


def safe_cell(value: Any) -> str:
    """Text that no spreadsheet takes for a formula."""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
