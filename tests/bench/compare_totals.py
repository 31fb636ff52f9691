"""`python -m tests.bench.compare_totals`: the same transcripts priced by MemoryHub, tokenbill, LiteLLM's prices, and counted by ccusage.

The other tools are fetched into a throw-away folder. Every case of the cost tests is one row; where another tool's total
differs, `why` names the rule behind ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.bench.refresh_vs_ccusage import install_ccusage
from tests.bench.throwaway import show, throwaway_hub
from tests.bench.transcripts import write_transcripts

WEEK_MEGABYTES = 10
PACKAGES = ("litellm==1.110.2", "tokenbill==0.2.0")
# Which of our rules a difference comes from; a case that differs and is not named here is a fault.
WHY = {
    "a partial split": "what the split leaves open is priced at 5m, not dropped",
    "no split": "a write without its 5m/1h split is priced at 5m and flagged, not dropped",
    "a long prompt on Haiku 5.5": "Haiku 5.5 has a price, and its tier is chosen by the whole prompt of the request",
    "two short prompts on Haiku 5.5": "Haiku 5.5 has a price, and its tier is chosen by the whole prompt of the request",
    "served in the US": "inference_geo us costs 1.1 times on models from 4.6 on",
    "fast": "fast mode costs twice",
    "a batch": "the batch tier costs half, cache tokens too",
    "a region": "a regional cloud profile carries ten per cent",
    "a synthetic answer": "no model made a synthetic answer",
    "an API error": "lines of API errors are not billed",
    "a side chain that replays its parent under a new request": "the main chain's line counts",
    "the replay first": "the main chain's line counts",
    "a gateway that drops the request id": "the message id alone names a response",
    "another request id of one message": "the message id alone names a response",
    "no message id": "the request id names a response that has no message id",
    "neither id": "the line's uuid names a response without ids",
    "an advisor at its own price": "an advisor's tokens are outside the totals, at the advisor's price",
    "a compaction beside the totals": "a compaction's tokens are outside the totals",
    "web searches": "a web search costs 0.01 USD",
    "a negative number is left out": "a record that can't be right is in no sum",
    "twenty sessions": "Sonnet 5.5 has a price; where the model is not known it costs nothing",
    "old long context": "above 200,000 tokens old Sonnets cost more until 2026-04-30",
}


def main() -> None:
    if not shutil.which("npm"):
        show("unexplained_differences", -1, "cases", "<= 0", skipped="npm is not installed")
        return
    with tempfile.TemporaryDirectory(prefix="memoryhub-bench-") as name, throwaway_hub():
        folder = Path(name)
        ccusage = install_ccusage(folder / "npm")
        prices, tokenbill = fetch_packages(folder / "packages")
        unexplained = 0
        for row in compare_cases(folder, ccusage, tokenbill, prices):
            explained = row["same"] or bool(row["why"])
            unexplained += not explained
            show("same_or_explained", int(explained), "case", ">= 1", **row)
        show("unexplained_differences", unexplained, "cases", "<= 0")


def fetch_packages(folder: Path) -> tuple[dict[str, Any], Path]:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder), *PACKAGES]
    subprocess.run(command, check=True, capture_output=True)
    with zipfile.ZipFile(next(folder.glob("litellm-*.whl"))) as wheel:
        prices = json.loads(wheel.read("litellm/model_prices_and_context_window_backup.json"))
    tokenbill = folder / "tokenbill"
    with zipfile.ZipFile(next(folder.glob("tokenbill-*.whl"))) as wheel:
        wheel.extractall(tokenbill)
    return prices, tokenbill


def compare_cases(
    folder: Path, ccusage: list[str], tokenbill: Path, prices: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """One row per case of the cost tests, and one for a folder as large as a team's week."""
    from tests.flows.test_import_transcripts_costs import CASES
    from tests.flows.transcript_makers import write_file

    for number, (name, files, _) in enumerate(CASES):
        claude = folder / f"case-{number}"
        for stem, lines in files.items():
            write_file(claude / "projects" / "p" / f"{stem}.jsonl", *lines)
        yield compare_folder(name, claude, folder, ccusage, tokenbill, prices)
    claude = folder / "week"
    write_transcripts(claude / "projects", megabytes=WEEK_MEGABYTES, files=20)
    yield compare_folder("twenty sessions", claude, folder, ccusage, tokenbill, prices)


def compare_folder(
    name: str, claude: Path, folder: Path, ccusage: list[str], tokenbill: Path, prices: dict[str, Any]
) -> dict[str, Any]:
    from memoryhub.flows.import_transcripts import import_transcripts
    from memoryhub.prompt_cache.models import UsageRecord
    from memoryhub.prompt_cache.queries import build_report
    from memoryhub.workspaces.services import create_workspace

    home = create_workspace(name=claude.name)
    import_transcripts(workspace=home, paths=[claude], usage_only=True)
    report = build_report(home)
    records = list(UsageRecord.objects.of(home))
    ours = {"usd": report.totals.cost_usd, "tokens": sum(one.prompt_tokens + one.output_tokens for one in records)}
    theirs = {
        "tokenbill_usd": tokenbill_total(tokenbill, claude, folder),
        "litellm_usd": sum((litellm_cost(prices, one) for one in records), Decimal(0)),
        "ccusage_tokens": ccusage_tokens(ccusage, claude),
    }
    same = (
        theirs["tokenbill_usd"] == theirs["litellm_usd"] == ours["usd"] and theirs["ccusage_tokens"] == ours["tokens"]
    )
    return {
        "case": name,
        **{key: plain(value) for key, value in (*ours.items(), *theirs.items())},
        "same": same,
        "why": "" if same else WHY.get(name, ""),
    }


def plain(value: Any) -> Any:
    return format(value.normalize(), "f") if isinstance(value, Decimal) else value


def litellm_cost(prices: dict[str, Any], record: Any) -> Decimal:
    """LiteLLM's price of a record, by its own field names: today's price, whatever the day was."""
    entry = prices.get(record.model, {})
    suffix = (
        "_above_100k_tokens"
        if record.prompt_tokens > 100_000 and "input_cost_per_token_above_100k_tokens" in entry
        else ""
    )
    rates = {
        "input_tokens": f"input_cost_per_token{suffix}",
        "cache_write_5m_tokens": f"cache_creation_input_token_cost{suffix}",
        "cache_write_1h_tokens": f"cache_creation_input_token_cost_above_1hr{suffix}",
        "cache_read_tokens": f"cache_read_input_token_cost{suffix}",
        "output_tokens": f"output_cost_per_token{suffix}",
    }
    return sum((getattr(record, name) * Decimal(str(entry.get(rate, 0))) for name, rate in rates.items()), Decimal(0))


def tokenbill_total(tokenbill: Path, claude: Path, folder: Path) -> Decimal | None:
    command = [sys.executable, "-m", "tokenbill", "scan", "--claude-dir", str(claude / "projects"), "--format", "json"]
    environment = {**os.environ, "PYTHONPATH": str(tokenbill), "HOME": str(folder)}
    done = subprocess.run(
        [*command, "--self", "--deterministic"], env=environment, capture_output=True, text=True, cwd=folder
    )
    try:
        rows = json.loads(done.stdout)["bill"]["breakdowns"][0]["rows"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    amounts = [row[kind] for row in rows for kind in ("exact", "estimated") if row.get(kind)]
    return sum((Decimal(amount["usd"]) for amount in amounts), Decimal(0))


def ccusage_tokens(ccusage: list[str], claude: Path) -> int | None:
    environment = {**os.environ, "CLAUDE_CONFIG_DIR": str(claude)}
    done = subprocess.run(ccusage, env=environment, capture_output=True, text=True)
    try:
        totals = json.loads(done.stdout).get("totals") or {}
    except ValueError:
        return None
    return int(totals.get("totalTokens", 0))


if __name__ == "__main__":
    main()
