"""What the provider rejects, what it silently does not cache, and what the session's history advises."""

import copy
from datetime import timedelta
from typing import Any

import pytest

from memoryhub.prompt_cache.domain.exchange import Exchange
from memoryhub.prompt_cache.domain.request_body import BadRequestBody, read_prompt
from memoryhub.prompt_cache.domain.rulebook import RULE_VERSIONS
from memoryhub.prompt_cache.domain.validator import Finding, validate
from tests.prompt_cache.rules.cases import HOUR, MARK, START, Body, make_body, make_exchange, next_turn, text, tool

LONG = "word " * 2_000


def user(*blocks: Body, **more: Any) -> Body:
    return {"role": "user", "content": list(blocks), **more}


def errors(body: Body, **more: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.path) for finding in validate(body, **more) if finding.level == "error"]


def found(body: Body, code: str, **more: Any) -> Finding | None:
    return next((finding for finding in validate(body, **more) if finding.code == code), None)


def marked(kind: str, **more: Any) -> Body:
    return {"type": kind, "cache_control": MARK, **more}


ERRORS: list[tuple[str, Body, list[tuple[str, str]]]] = [
    (
        "five markers",
        {"system": [text(str(n), cache_control=MARK) for n in range(5)]},
        [("too_many_markers", "system[4]")],
    ),
    (
        "five markers over all sections",
        {
            "tools": [tool("a", cache_control=MARK)],
            "system": [text("a", cache_control=MARK), text("b", cache_control=MARK)],
            "messages": [user(text("a", cache_control=MARK), text("b", cache_control=MARK))],
        },
        [("too_many_markers", "messages[0].content[1]")],
    ),
    (
        "four and automatic",
        {
            "cache_control": MARK,
            "system": [text(str(n), cache_control=MARK) for n in range(4)],
            "messages": [user(text("q"))],
        },
        [("too_many_markers", "cache_control")],
    ),
    ("four", {"system": [text(str(n), cache_control=MARK) for n in range(4)]}, []),
    (
        "three and automatic",
        {
            "cache_control": MARK,
            "system": [text(str(n), cache_control=MARK) for n in range(3)],
            "messages": [user(text("q"))],
        },
        [],
    ),
    (
        "1h after 5m",
        {"system": [text("a", cache_control=MARK)], "messages": [user(text("b", cache_control=HOUR))]},
        [("ttl_order", "messages[0].content[0]")],
    ),
    (
        "1h system after 5m tools",
        {"tools": [tool("a", cache_control=MARK)], "system": [text("a", cache_control=HOUR)]},
        [("ttl_order", "system[0]")],
    ),
    ("5m after 1h", {"system": [text("a", cache_control=HOUR)], "messages": [user(text("b", cache_control=MARK))]}, []),
    (
        "automatic 1h after 5m",
        {"cache_control": HOUR, "system": [text("a", cache_control=MARK)], "messages": [user(text("b"))]},
        [("ttl_order", "cache_control")],
    ),
    (
        "a ttl of ten minutes",
        {"system": [text("a", cache_control={"type": "ephemeral", "ttl": "10m"})]},
        [("ttl_value", "system[0]")],
    ),
    (
        "a ttl that is a number",
        {"system": [text("a", cache_control={"type": "ephemeral", "ttl": 300})]},
        [("ttl_value", "system[0]")],
    ),
    (
        "a type that is not ephemeral",
        {"system": [text("a", cache_control={"type": "persistent"})]},
        [("ttl_value", "system[0]")],
    ),
    (
        "a marker that is a text",
        {"tools": [tool("a", cache_control="ephemeral")], "messages": []},
        [("ttl_value", "tools[0]")],
    ),
    (
        "an automatic ttl of a day",
        {"cache_control": {"type": "ephemeral", "ttl": "24h"}, "messages": [user(text("a"))]},
        [("ttl_value", "cache_control")],
    ),
    ("no marker at all", {"system": [text("a", cache_control=None)]}, []),
    (
        "empty text",
        {"messages": [user(text("", cache_control=MARK))]},
        [("empty_text_marker", "messages[0].content[0]")],
    ),
    ("empty system text", {"system": [text("", cache_control=MARK)]}, [("empty_text_marker", "system[0]")]),
    (
        "thinking",
        {"messages": [{"role": "assistant", "content": [marked("thinking", thinking="x", signature="s")]}]},
        [("thinking_marker", "messages[0].content[0]")],
    ),
    (
        "redacted thinking",
        {"messages": [{"role": "assistant", "content": [marked("redacted_thinking", data="x")]}]},
        [("thinking_marker", "messages[0].content[0]")],
    ),
    (
        "a marker inside a tool result",
        {"messages": [user({"type": "tool_result", "tool_use_id": "t", "content": [text("x", cache_control=MARK)]})]},
        [("nested_marker", "messages[0].content[0].content[0]")],
    ),
    (
        "a marker on a citation",
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [text("x", citations=[{"type": "char_location", "cache_control": MARK}])],
                }
            ]
        },
        [("nested_marker", "messages[0].content[0].citations[0]")],
    ),
    (
        "a marker in a document's content",
        {
            "messages": [
                user({"type": "document", "source": {"type": "content", "content": [text("x", cache_control=MARK)]}})
            ]
        },
        [("nested_marker", "messages[0].content[0].source.content[0]")],
    ),
    ("a marker on a message", {"messages": [user(text("x"), cache_control=MARK)]}, [("nested_marker", "messages[0]")]),
    (
        "a marker on a tool result",
        {"messages": [user({"type": "tool_result", "tool_use_id": "t", "content": "x", "cache_control": MARK})]},
        [],
    ),
    ("a marker on an mcp toolset", {"tools": [marked("mcp_toolset", mcp_server_name="m")], "messages": []}, []),
    (
        "a schema with a cache_control property",
        {"tools": [tool("a", input_schema={"properties": {"cache_control": {"type": "x"}}})], "messages": []},
        [],
    ),
    (
        "an input with a cache_control key",
        {
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t", "name": "a", "input": {"cache_control": MARK}}],
                }
            ]
        },
        [],
    ),
    (
        "automatic beside another ttl",
        {"cache_control": MARK, "messages": [user(text("x", cache_control=HOUR))]},
        [("auto_ttl_conflict", "cache_control")],
    ),
    ("automatic beside the same ttl", {"cache_control": HOUR, "messages": [user(text("x", cache_control=HOUR))]}, []),
    (
        "automatic walks back over thinking",
        {
            "cache_control": MARK,
            "messages": [
                {"role": "assistant", "content": [text("x", cache_control=HOUR), {"type": "thinking", "thinking": "t"}]}
            ],
        },
        [("auto_ttl_conflict", "cache_control")],
    ),
    ("pre-warming a stream", {"max_tokens": 0, "stream": True, "messages": []}, [("prewarm_illegal", "stream")]),
    (
        "pre-warming with thinking",
        {"max_tokens": 0, "thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": []},
        [("prewarm_illegal", "thinking")],
    ),
    (
        "pre-warming with a format",
        {"max_tokens": 0, "output_config": {"format": {"type": "json_schema"}}, "messages": []},
        [("prewarm_illegal", "output_config.format")],
    ),
    (
        "pre-warming with any tool",
        {"max_tokens": 0, "tool_choice": {"type": "any"}, "messages": []},
        [("prewarm_illegal", "tool_choice")],
    ),
    (
        "pre-warming with a tool",
        {"max_tokens": 0, "tool_choice": {"type": "tool", "name": "a"}, "messages": []},
        [("prewarm_illegal", "tool_choice")],
    ),
    ("pre-warming with auto tools", {"max_tokens": 0, "tool_choice": {"type": "auto"}, "messages": []}, []),
    ("pre-warming plainly", {"max_tokens": 0, "stream": False, "thinking": {"type": "disabled"}, "messages": []}, []),
    (
        "a marker on a message that clears itself",
        {"messages": [{"role": "system", "clear_at": "next_user_message", "content": [text("x", cache_control=MARK)]}]},
        [("clear_at_marker", "messages[0].content[0]")],
    ),
    (
        "a marker on a system message that stays",
        {"messages": [{"role": "system", "clear_at": "never", "content": [text("x", cache_control=MARK)]}]},
        [],
    ),
]


@pytest.mark.parametrize(("body", "expected"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_what_the_provider_rejects(body: Body, expected: list[tuple[str, str]]) -> None:
    before = copy.deepcopy(body)

    assert errors(body) == expected
    assert body == before


def test_prewarming_is_refused_in_a_batch() -> None:
    assert errors({"max_tokens": 0, "messages": []}, batch=True) == [("prewarm_illegal", "batch")]


def test_rejections_carry_their_status() -> None:
    findings = validate({"system": [text("", cache_control=MARK)]})

    assert [finding.http for finding in findings if finding.level == "error"] == [400]


@pytest.mark.parametrize(
    ("model", "words", "minimum"),
    [
        ("claude-opus-5-5", 300, 512),
        ("claude-sonnet-4-6", 700, 1024),
        ("claude-opus-4-7", 1_500, 2048),
        ("claude-haiku-4-5", 3_000, 4096),
    ],
)
def test_a_marker_below_the_models_minimum(model: str, words: int, minimum: int) -> None:
    body = {"model": model, "system": [text("word " * words, cache_control=MARK)], "messages": [user(text(LONG * 2))]}

    finding = found(body, "below_minimum")

    assert finding is not None
    assert (finding.level, finding.path, finding.facts["minimum"]) == ("warning", "system[0]", minimum)
    assert 0 < finding.facts["tokens"] < minimum


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-who-knows"])
def test_a_long_enough_prefix_is_not_warned_of(model: str) -> None:
    assert found({"model": model, "system": [text(LONG, cache_control=MARK)]}, "below_minimum") is None


def test_an_unmarked_long_prompt() -> None:
    body = {"model": "claude-opus-5-5", "system": [text(LONG)], "messages": [user(text("q"))]}

    finding = found(body, "no_marker")

    assert finding is not None
    assert finding.facts["tokens"] >= finding.facts["minimum"] == 512
    assert found(body | {"cache_control": MARK}, "no_marker") is None
    assert found(body | {"system": [text("short")]}, "no_marker") is None


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Now: 2026-11-29T10:00:00Z", "timestamp"),
        ("Today is 2026-11-29.", "timestamp"),
        ("Date: Sunday, November 29, 2026", "timestamp"),
        ("ts 1764410000", "timestamp"),
        ("Session 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "uuid"),
        ("This is request #41.", "counter"),
    ],
)
def test_something_volatile_before_the_first_marker(words: str, kind: str) -> None:
    finding = found({"system": [text(words), text("Be kind.", cache_control=MARK)]}, "volatile_before_marker")

    assert finding is not None
    assert (finding.path, finding.facts["field"], finding.facts["kind"]) == ("system[0]", "system[0].text", kind)


@pytest.mark.parametrize(
    "body",
    [
        {"system": [text("You are kind. Use version 2 of the guide.", cache_control=MARK)]},
        {"system": [text("Be kind.", cache_control=MARK), text("Now: 2026-11-29T10:00:00Z")]},
        {"tools": [tool("a", description="A date such as 2024-05-01."), tool("b", cache_control=MARK)], "messages": []},
        {"system": [text("Now: 2026-11-29T10:00:00Z")], "messages": []},
    ],
)
def test_nothing_volatile_before_the_first_marker(body: Body) -> None:
    assert found(body, "volatile_before_marker") is None


# --- With history ----------------------------------------------------------------------------------------------------


def ask(words: str) -> Body:
    return make_body(messages=[user(text("A long document."), text(words, cache_control=MARK))])


def test_a_marked_tail_that_changes_each_time() -> None:
    history = [make_exchange(ask(f"now 10:0{minute}"), write=9000) for minute in range(3)]

    finding = found(ask("now 10:03"), "varying_tail", history=history)

    assert finding is not None
    assert finding.path == "messages[0].content[1]"


def test_a_growing_conversation_has_no_varying_tail() -> None:
    first = make_body()
    second = next_turn(first)
    third = next_turn(second)

    assert found(third, "varying_tail", history=[make_exchange(first, write=1), make_exchange(second, write=1)]) is None


def far_turn(count: int) -> Body:
    later = next_turn(make_body())
    later["messages"][-2]["content"] = [text(f"part {number}") for number in range(count)]
    return later


def test_a_marker_too_far_from_the_last_write() -> None:
    finding = found(far_turn(25), "lookback_risk", history=[make_exchange(make_body(), write=9000)])

    assert finding is not None
    assert finding.facts == {"positions": 26, "propose": "messages[3].content[18]"}


def test_a_proposed_second_marker_mends_the_lookback() -> None:
    body = far_turn(25)
    body["messages"][3]["content"][18]["cache_control"] = MARK

    assert found(body, "lookback_risk", history=[make_exchange(make_body(), write=9000)]) is None


@pytest.mark.parametrize("count", [1, 18])
def test_a_marker_near_enough_to_the_last_write(count: int) -> None:
    assert found(far_turn(count), "lookback_risk", history=[make_exchange(make_body(), write=9000)]) is None


def test_runs_of_tool_calls_counted_one_by_one_before_september_2026() -> None:
    body = next_turn(make_body())
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "read", "input": {"n": n}} for n in range(20)]
    body["messages"][-2]["content"] = calls
    history = [make_exchange(make_body(), write=9000)]

    assert found(body, "lookback_risk", history=history) is None
    assert found(body, "lookback_risk", history=history, rules=RULE_VERSIONS[0]) is not None


def chain(gaps: list[int], ttl: Body) -> tuple[Body, list[Exchange], Exchange]:
    body = make_body(system=[text("s", cache_control=ttl)])
    body["messages"][2]["content"][0]["cache_control"] = ttl
    at, items = 0, []
    for step, gap in enumerate([0, *gaps]):
        at += gap
        items.append(make_exchange(body, read=0, write=10_000 + 500 * step, rest=0, at=at))
    return body, items[:-1], items[-1]


@pytest.mark.parametrize(
    ("gaps", "ttl", "code"),
    [
        ([1200, 1200, 1200], MARK, "ttl_too_short"),
        ([60, 60, 60], MARK, None),
        ([60, 60, 60], HOUR, "ttl_not_needed"),
        ([1200, 1200, 1200], HOUR, None),
        ([7200, 7200, 7200], HOUR, "ttl_not_needed"),  # an hour is lost as well
        ([60], HOUR, None),  # one pause proves nothing
    ],
)
def test_the_cheaper_lifetime_is_advised(gaps: list[int], ttl: Body, code: str | None) -> None:
    body, history, exchange = chain(gaps, ttl)

    advice = [item.code for item in validate(body, history=history, exchange=exchange) if item.level == "advice"]

    assert advice == ([code] if code else [])


def test_a_cold_fan_out_is_advised_against() -> None:
    first = make_exchange(make_body(), write=9000, first_byte_at=START + timedelta(seconds=3))
    second = make_exchange(make_body(), write=9000, at=1)
    late = make_exchange(make_body(), read=9000, at=5)

    finding = found(make_body(), "cold_fanout", history=[first], exchange=second)

    assert finding is not None
    assert finding.facts == {"requests": 2}
    assert found(make_body(), "cold_fanout", history=[first], exchange=late) is None


# --- Hostile bodies --------------------------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    None, [], "x", 7, True, {}, {"model": "m"}, {"messages": "x"}, {"messages": [1]}, {"messages": [{"role": 1, "content": "x"}]}, {"messages": [{}]},
    {"messages": [{"role": "user", "content": 5}]}, {"messages": [{"role": "user", "content": ["x"]}]}, {"tools": {"a": 1}}, {"tools": [None]}, {"system": 5},
    {"system": [5]}, {"system": {"type": "text"}}, {"model": 5, "messages": []}, {"model": [], "messages": [], "speed": {"a": 1}}, {"messages": [], "thinking": "on"}, {"messages": [], "tool_choice": ["any"]},
    {"messages": [], "output_config": "high"},
]  # fmt: skip


@pytest.mark.parametrize("body", HOSTILE)
def test_what_is_not_a_request_is_refused_with_a_reason(body: Any) -> None:
    with pytest.raises(BadRequestBody):
        validate(body)


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


ODD: list[Body] = [
    {"messages": [{"role": "user", "content": None}]},
    {"messages": [{"role": "user", "content": []}]},
    {"messages": [], "system": ""},
    {"messages": [user({"type": None})]},
    {"messages": [user({"type": ["x"]})]},
    {"messages": [user({"type": "text", "text": 5})]},
    {"messages": [user({"type": "text", "text": "\ud800"})]},
    {"messages": [user({"type": "text", "text": "\x00"})]},
    {"messages": [user({"type": "image", "source": "x"})]},
    {"messages": [user({"type": "image", "source": {"type": "base64", "data": 7}})]},
    {"messages": [user({"type": "tool_result", "content": [1, None, "x", [2]]})]},
    {"messages": [user({"type": "tool_use", "input": {"n": 10**40, "f": 1e308, "x": float("inf")}})]},
    {"messages": [user({"type": "document", "citations": {"enabled": "yes"}, "source": {"content": "x"}})]},
    {"messages": [{"role": "\ud800", "content": "x"}]},
    {"tools": [{"name": None}, {"name": {"a": 1}}, {}], "messages": []},
    {"tools": [{"type": 5, "defer_loading": "yes"}], "messages": []},
    {"model": "\ud800", "messages": [], "tool_choice": {"type": {"x": 1}}, "thinking": {"type": [1]}},
    {
        "messages": [],
        "betas": {"a": 1},
        "output_config": {"effort": ["x"], "format": 5, "task_budget": [1]},
        "max_tokens": False,
    },
    {"messages": [user({"type": "tool_use", "input": nested(80)})]},
]


@pytest.mark.parametrize("body", ODD)
def test_odd_values_are_judged_without_failing(body: Body) -> None:
    assert validate(body) is not None
    assert len(read_prompt(body).prefix_hashes) == len(read_prompt(body).blocks)


def test_a_request_nested_too_deep_is_refused() -> None:
    with pytest.raises(BadRequestBody):
        read_prompt({"messages": [user({"type": "tool_use", "input": nested(200)})]})
