"""Reading usage objects: conventions, splits, iterations, and numbers that can't be right."""

from typing import Any

import pytest

from memoryhub.prompt_cache.domain.pricing import Tokens
from memoryhub.prompt_cache.domain.usage import Stated, UsageError, read_usage

FULL = {
    "input_tokens": 3,
    "output_tokens": 812,
    "output_tokens_details": {"thinking_tokens": 300},
    "cache_creation_input_tokens": 12_304,
    "cache_read_input_tokens": 41_850,
    "cache_creation": {"ephemeral_5m_input_tokens": 304, "ephemeral_1h_input_tokens": 12_000},
    "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    "service_tier": "standard",
    "speed": "standard",
    "inference_geo": "global",
}


def test_every_field_is_read() -> None:
    usage = read_usage(FULL)

    assert usage.parts[0].stated == Stated(3, 812, 41_850, 12_304, 304, 12_000, 300, 1, 0)
    assert usage.parts[0].stated.tokens() == Tokens(3, 304, 12_000, 41_850, 812)
    assert (usage.convention, usage.service_tier, usage.speed, usage.inference_geo) == (
        "anthropic",
        "standard",
        "standard",
        "global",
    )


@pytest.mark.parametrize(
    ("total", "split", "tokens", "flags"),
    [
        (1000, (0, 1000), (0, 1000), ()),
        (1000, (400, 600), (400, 600), ()),
        (1000, None, (1000, 0), ("split_missing",)),
        (1000, (0, 0), (1000, 0), ("split_missing",)),
        (1000, (None, 400), (600, 400), ("split_partial",)),
        (1000, (100, 400), (600, 400), ("split_partial",)),
        (None, (100, 400), (100, 400), ()),
        (0, None, (0, 0), ()),
        (None, None, (0, 0), ()),
    ],
)
def test_what_the_split_leaves_open_counts_as_5m_and_is_flagged(
    total: int | None, split: tuple[int | None, int | None] | None, tokens: tuple[int, int], flags: tuple[str, ...]
) -> None:
    raw: dict[str, Any] = {"input_tokens": 1, "cache_creation_input_tokens": total}
    if split is not None:
        raw["cache_creation"] = {"ephemeral_5m_input_tokens": split[0], "ephemeral_1h_input_tokens": split[1]}

    stated = read_usage(raw).parts[0].stated

    assert (stated.tokens().cache_write_5m, stated.tokens().cache_write_1h) == tokens
    assert stated.flags("anthropic") == flags


INCLUSIVE_SHAPES: list[dict[str, Any]] = [
    {
        "gen_ai.usage.input_tokens": 130_213,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 128_955,
        "gen_ai.usage.cache_creation.input_tokens": 1_253,
    },
    {
        "prompt_tokens": 130_213,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 128_955, "cache_creation_tokens": 1_253},
    },
    {
        "prompt_tokens": 130_213,
        "completion_tokens": 9,
        "cache_read_input_tokens": 128_955,
        "cache_creation_input_tokens": 1_253,
    },
    {
        "input_tokens": 130_213,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 128_955},
        "cache_creation_input_tokens": 1_253,
    },
]


@pytest.mark.parametrize("raw", INCLUSIVE_SHAPES)
def test_inclusive_counters_are_recognised_and_made_disjoint(raw: dict[str, Any]) -> None:
    usage = read_usage(raw)

    assert usage.convention == "inclusive"
    assert usage.parts[0].stated.tokens() == Tokens(5, 1_253, 0, 128_955, 9)


def test_the_convention_that_the_caller_names_counts() -> None:
    native = read_usage({"input_tokens": 5, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1_253})
    inclusive = read_usage(
        {"input_tokens": 130_213, "cache_read_input_tokens": 128_955, "cache_creation_input_tokens": 1_253}, "inclusive"
    )

    assert inclusive.parts[0].stated.tokens() == native.parts[0].stated.tokens() == Tokens(5, 1_253, 0, 128_955, 0)


def test_an_inclusive_total_without_a_write_total_subtracts_the_split() -> None:
    raw = {"input_tokens": 100, "cache_creation": {"ephemeral_1h_input_tokens": 60}}

    assert read_usage(raw, "inclusive").parts[0].stated.tokens() == Tokens(40, 0, 60, 0, 0)


@pytest.mark.parametrize(
    ("raw", "convention", "flags"),
    [
        ({"input_tokens": -1}, "anthropic", ("negative_number",)),
        ({"input_tokens": 1, "output_tokens": -5}, "anthropic", ("negative_number",)),
        ({"input_tokens": 1, "cache_read_input_tokens": -5}, "anthropic", ("negative_number",)),
        ({"input_tokens": 10, "cache_read_input_tokens": 11}, "inclusive", ("part_exceeds_total",)),
        (
            {"input_tokens": 1, "cache_creation_input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 6}},
            "anthropic",
            ("part_exceeds_total",),
        ),
        ({"input_tokens": 10**10 + 1}, "anthropic", ("implausible_number",)),
        ({"input_tokens": 10**10}, "anthropic", ()),
    ],
)
def test_numbers_that_cannot_be_right_are_kept_and_flagged(
    raw: dict[str, Any], convention: Any, flags: tuple[str, ...]
) -> None:
    stated = read_usage(raw, convention).parts[0].stated

    assert stated.flags(convention) == flags


def test_a_negative_number_is_not_clamped() -> None:
    assert read_usage({"input_tokens": -7, "output_tokens": 2}).parts[0].stated.tokens() == Tokens(-7, 0, 0, 0, 2)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (None, "usage"),
        ([], "usage"),
        ("text", "usage"),
        ({}, "usage"),
        ({"service_tier": "batch"}, "usage"),
        ({"input_tokens": "5"}, "usage.input_tokens"),
        ({"input_tokens": 5.5}, "usage.input_tokens"),
        ({"input_tokens": True}, "usage.input_tokens"),
        ({"input_tokens": [1]}, "usage.input_tokens"),
        ({"input_tokens": float("nan")}, "usage.input_tokens"),
        ({"input_tokens": float("inf")}, "usage.input_tokens"),
        ({"input_tokens": 10**400}, "usage.input_tokens"),
        ({"input_tokens": 10**16}, "usage.input_tokens"),
        ({"input_tokens": 1, "cache_creation": 5}, "usage.cache_creation"),
        ({"input_tokens": 1, "cache_creation": {"ephemeral_1h_input_tokens": "x"}}, "usage.cache_creation"),
        ({"input_tokens": 1, "iterations": {}}, "usage.iterations"),
        ({"input_tokens": 1, "iterations": [5]}, "usage.iterations[0]"),
        ({"input_tokens": 1, "iterations": [{"type": "compaction", "input_tokens": "9"}]}, "usage.iterations[0]"),
        ({"input_tokens": 1, "iterations": [{"type": "advisor_message", "model": 4}]}, "usage.iterations[0].model"),
        ({"input_tokens": 1, "service_tier": 7}, "usage.service_tier"),
    ],
)
def test_what_is_no_usage_is_refused_with_its_place(raw: Any, path: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_usage(raw)

    assert refused.value.path.startswith(path)


def test_a_whole_float_is_a_number_and_null_is_missing() -> None:
    stated = (
        read_usage({"input_tokens": 5.0, "output_tokens": None, "cache_creation": None, "iterations": None})
        .parts[0]
        .stated
    )

    assert stated == Stated(input=5)


def test_iterations_that_the_totals_leave_out_become_parts_of_their_own() -> None:
    raw = {
        "input_tokens": 10,
        "speed": "fast",
        "iterations": [
            {"type": "message", "input_tokens": 10, "output_tokens": 1},
            {"type": "compaction", "input_tokens": 500, "output_tokens": 50},
            {"type": "advisor_message", "model": "claude-opus-5-5", "input_tokens": 9, "output_tokens": 2},
            {"type": "fallback_message", "model": "claude-sonnet-5-5", "input_tokens": 7},
            {"type": "something_new", "input_tokens": 1_000_000},
        ],
    }

    parts = read_usage(raw).parts

    assert [(p.index, p.kind, p.model, p.stated.input) for p in parts] == [
        (0, "message", None, 10),
        (2, "compaction", None, 500),
        (3, "advisor_message", "claude-opus-5-5", 9),
    ]


def test_an_advisor_without_a_model_is_not_priced_as_the_main_model() -> None:
    raw = {"input_tokens": 1, "iterations": [{"type": "advisor_message", "input_tokens": 9}]}

    assert read_usage(raw).parts[1].model == "unknown"


@pytest.mark.parametrize(("word", "kept"), [("not_available", ""), (None, ""), ("US", "us"), ("global", "global")])
def test_geo_words(word: str | None, kept: str) -> None:
    assert read_usage({"input_tokens": 1, "inference_geo": word}).inference_geo == kept
