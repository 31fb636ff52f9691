"""What does not break the cache is never named, however much of it changes."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.prompt_cache.rules.cases import HOUR, MARK, Body, diagnose_pair, make_body, next_turn, text, tool

Change = Callable[[Body], Any]


def strip_markers(body: Body) -> None:
    for block in (*body["tools"], *body["system"], *(b for m in body["messages"] for b in m["content"])):
        block.pop("cache_control", None)


HARMLESS: list[tuple[str, Change]] = [
    ("appended turns only", lambda b: None),
    (
        "a marker moved",
        lambda b: b["system"][0].update(b["system"][1].pop("cache_control") and {"cache_control": HOUR}),
    ),
    ("automatic caching instead of markers", lambda b: (strip_markers(b), b.update(cache_control=MARK))),
    ("metadata", lambda b: b.update(metadata={"user_id": "u2"})),
    ("max_tokens", lambda b: b.update(max_tokens=9)),
    ("stream", lambda b: b.update(stream=True)),
    ("sampling", lambda b: b.update(temperature=0.2, top_p=0.9, top_k=5)),
    ("stop sequences", lambda b: b.update(stop_sequences=["END"])),
    ("service tier", lambda b: b.update(service_tier="standard_only")),
    ("a deferred tool added first", lambda b: b["tools"].insert(0, tool("late", defer_loading=True))),
    ("defer_loading false spelled out", lambda b: b["tools"][0].update(defer_loading=False)),
    ("a system message appended", lambda b: b["messages"].append({"role": "system", "content": "Be brief."})),
    (
        "a tool added by a block",
        lambda b: b["messages"].append(
            {
                "role": "system",
                "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}}],
            }
        ),
    ),
    (
        "effort for one message",
        lambda b: b["messages"].append({"role": "system", "content": "x", "output_config": {"effort": "low"}}),
    ),
    (
        "a message that clears itself",
        lambda b: b["messages"].insert(1, {"role": "system", "clear_at": "next_user_message", "content": "now 10:31"}),
    ),
    ("default effort spelled out", lambda b: b.update(output_config={"effort": "high"})),
    (
        "default tool choice spelled out",
        lambda b: b.update(tool_choice={"type": "auto", "disable_parallel_tool_use": False}),
    ),
    ("thinking off spelled out", lambda b: b.update(thinking={"type": "disabled"})),
    ("default speed spelled out", lambda b: b.update(speed="standard")),
    ("the model's dated id", lambda b: b.update(model="claude-opus-5-5-20260922")),
    ("another beta", lambda b: b.update(betas=["cache-diagnosis-2026-04-07"])),
    (
        "a block's marker inside a tool result",
        lambda b: b["messages"][2]["content"][0].update(content=[text("print(1)", cache_control=MARK)]),
    ),
]


@pytest.mark.parametrize("change", [row[1] for row in HARMLESS], ids=[row[0] for row in HARMLESS])
def test_what_keeps_the_prefix_is_not_accused(change: Change) -> None:
    before = make_body()
    before["messages"][2]["content"][0]["content"] = [text("print(1)")]
    after = next_turn(before)
    change(after)

    answer = diagnose_pair(before, after, read=10_000)

    assert (answer.verdict, answer.cause, answer.path, answer.also) == ("hit", "none", None, ())


def test_a_string_is_the_same_as_one_text_block() -> None:
    before = make_body(system="Be kind.")
    after = next_turn(make_body(system=[text("Be kind.", cache_control=MARK)]))

    assert diagnose_pair(before, after, read=10_000).cause == "none"


def test_a_property_called_cache_control_is_part_of_a_schema() -> None:
    schema = {"type": "object", "properties": {"cache_control": {"type": "string"}}}
    before = make_body(tools=[tool("http", input_schema=schema)])
    after = next_turn(before)
    after["tools"][0]["input_schema"] = {"type": "object", "properties": {}}

    assert diagnose_pair(before, after).path == "tools[0].input_schema.properties.cache_control"


def test_another_question_behind_the_same_marked_system_is_healthy() -> None:
    before = make_body(messages=[{"role": "user", "content": "What is A?"}])
    after = make_body(messages=[{"role": "user", "content": "What is B?"}])

    assert diagnose_pair(before, after, read=10_000).cause == "none"


def test_thinking_is_kept_by_newer_models() -> None:
    thinking = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("ok")]}
    before = make_body()
    before["messages"].insert(1, thinking)

    assert diagnose_pair(before, next_turn(before), read=10_000).cause == "none"


def test_thinking_that_an_older_model_never_saw_again_may_be_left_out() -> None:
    before = make_body(model="claude-haiku-4-5")
    before["messages"] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("ok")]},
        {"role": "user", "content": [text("b", cache_control=MARK)]},
    ]
    after = next_turn(before)
    after["messages"][1]["content"].pop(0)

    assert diagnose_pair(before, after, read=10_000).cause == "none"


def test_an_older_model_drops_thinking_when_a_plain_user_message_comes() -> None:
    before = make_body(model="claude-sonnet-4-5")
    before["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "s"})

    answer = diagnose_pair(before, next_turn(before))

    assert (answer.cause, answer.path) == ("thinking_stripped", "messages[1].content[0]")


def test_an_older_model_keeps_thinking_within_a_tool_loop() -> None:
    before = make_body(model="claude-sonnet-4-5")
    before["messages"][1]["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "s"})
    after = copy.deepcopy(before)
    after["messages"] += [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "tu_2", "name": "grep", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "tu_2", "content": "x", "cache_control": MARK}],
        },
    ]

    assert diagnose_pair(before, after, read=10_000).cause == "none"
