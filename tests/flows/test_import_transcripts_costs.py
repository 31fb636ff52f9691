"""What transcripts cost, one case each: duplicates, forks, splits, tiers, modifiers, side chains, iterations."""

from pathlib import Path
from typing import Any

import pytest

from memoryhub.flows.import_transcripts import import_transcripts
from memoryhub.workspaces.models import Workspace
from tests.flows.transcript_makers import M, answer, cost_of, usage_of, write_file

FINAL = usage_of(3, 5000, 10_000, 20_000, 0, 10_000)
PLACEHOLDER = {**FINAL, "output_tokens": 1}


def advisor(model: str | None) -> dict[str, Any]:
    return {"type": "advisor_message", "input_tokens": M, **({"model": model} if model else {})}


CASES: list[tuple[str, dict[str, list[Any]], str]] = [
    (
        "lines of one stream",
        {"s1": [answer("m1", PLACEHOLDER), answer("m1", PLACEHOLDER), answer("m1", FINAL)]},
        "0.184012",
    ),
    ("the final line first", {"s1": [answer("m1", FINAL), answer("m1", PLACEHOLDER)]}, "0.184012"),
    (
        "a fork copies its past",
        {
            "s1": [answer("m1", usage_of(M))],
            "s2": [answer("m1", usage_of(M), sessionId="s2"), answer("m2", usage_of(M), sessionId="s2")],
        },
        "8",
    ),
    ("both lifetimes", {"s1": [answer("m1", usage_of(write=2 * M, short=M, long=M))]}, "13"),
    ("a partial split", {"s1": [answer("m1", usage_of(write=M, long=400_000))]}, "6.2"),
    ("no split", {"s1": [answer("m1", {"input_tokens": 0, "cache_creation_input_tokens": M})]}, "5"),
    ("a null split", {"s1": [answer("m1", {**usage_of(write=M), "cache_creation": None})]}, "5"),
    (
        "a long prompt on Haiku 5.5",
        {"s1": [answer("m1", usage_of(output=M, read=150_000), model="claude-haiku-5-5")]},
        "2.5075",
    ),
    (
        "two short prompts on Haiku 5.5",
        {"s1": [answer(m, usage_of(read=90_000), model="claude-haiku-5-5") for m in ("m1", "m2")]},
        "0.0018",
    ),
    ("served in the US", {"s1": [answer("m1", usage_of(M, inference_geo="us"))]}, "4.4"),
    ("fast", {"s1": [answer("m1", usage_of(M, read=M, speed="fast"))]}, "8.4"),
    ("a batch", {"s1": [answer("m1", usage_of(M, read=M, service_tier="batch"))]}, "2.1"),
    (
        "a Sonnet request",
        {"s1": [answer("m1", usage_of(3, 550, 12_304, 0, 12_304), model="claude-sonnet-4-6")]},
        "0.054399",
    ),
    ("the 1M suffix", {"s1": [answer("m1", usage_of(M), model="claude-opus-5-5[1m]")]}, "4"),
    ("a dated id", {"s1": [answer("m1", usage_of(M), model="claude-haiku-4-5-20251001")]}, "1"),
    ("a region", {"s1": [answer("m1", usage_of(M), model="eu.anthropic.claude-opus-5-5-v1:0")]}, "4.4"),
    ("an unknown model costs no guess", {"s1": [answer("m1", usage_of(M), model="claude-opus-9")]}, "0"),
    ("a synthetic answer", {"s1": [answer("m1", usage_of(M), model="<synthetic>")]}, "0"),
    ("an API error", {"s1": [answer("m1", usage_of(M), isApiErrorMessage=True)]}, "0"),
    (
        "a side chain that replays its parent under a new request",
        {"s1": [answer("m1", usage_of(M, 100)), answer("m1", usage_of(M, 900), isSidechain=True, requestId="r-other")]},
        "4.002",
    ),
    (
        "the replay first",
        {"s1": [answer("m1", usage_of(M, 900), isSidechain=True, requestId="x"), answer("m1", usage_of(M, 100))]},
        "4.002",
    ),
    ("a gateway that drops the request id", {"s1": [answer("m1", usage_of(M), requestId=None)] * 2}, "4"),
    (
        "another request id of one message",
        {"s1": [answer("m1", usage_of(M)), answer("m1", usage_of(M), requestId="r2")]},
        "4",
    ),
    ("no message id", {"s1": [answer("", usage_of(M), requestId="r1")] * 2}, "4"),
    ("neither id", {"s1": [answer("", usage_of(M), requestId=None, uuid=u) for u in ("a", "b")]}, "8"),
    (
        "an advisor at its own price",
        {"s1": [answer("m1", usage_of(M, iterations=[advisor("claude-opus-5-5")]), model="claude-haiku-4-5")]},
        "5",
    ),
    (
        "a compaction beside the totals",
        {
            "s1": [
                answer("m1", usage_of(M, iterations=[{"type": "compaction", "input_tokens": M}, {"type": "message"}]))
            ]
        },
        "8",
    ),
    ("web searches", {"s1": [answer("m1", usage_of(M, server_tool_use={"web_search_requests": 2}))]}, "4.02"),
    ("a negative number is left out", {"s1": [answer("m1", usage_of(-1, 5)), answer("m2", usage_of(M))]}, "4"),
    (
        "old long context",
        {"s1": [answer("m1", usage_of(300_000), model="claude-sonnet-4-5", timestamp="2026-04-01T00:00:00Z")]},
        "1.8",
    ),
    (
        "the same later",
        {"s1": [answer("m1", usage_of(300_000), model="claude-sonnet-4-5", timestamp="2026-05-01T00:00:00Z")]},
        "0.9",
    ),
]


@pytest.mark.parametrize(("files", "cost"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_costs_to_the_cent(workspace: Workspace, tmp_path: Path, files: dict[str, list[Any]], cost: str) -> None:
    for name, lines in files.items():
        write_file(tmp_path / "projects" / f"{name}.jsonl", *lines)

    result = import_transcripts(workspace=workspace, paths=[tmp_path])

    assert cost_of(workspace) == cost
    assert result.errors == []
