"""Events become the messages that a provider takes."""

import pytest

from memoryhub.session_cache.domain.context_window import (
    WindowEvent,
    call_ids,
    cut_at_compaction,
    find_unpaired,
    to_anthropic,
)


def event(kind, content, role="", id="e", call=""):
    return WindowEvent(id, kind, role, content, call)


CALL = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
ANSWER = {"type": "tool_result", "tool_use_id": "t1", "content": "text"}


@pytest.mark.parametrize(
    ("events", "messages"),
    [
        pytest.param(
            [event("message", "hi", "user"), event("message", "hello", "assistant")],
            [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
            id="texts stay texts",
        ),
        pytest.param(
            [event("message", "I look", "assistant"), event("tool_use", CALL), event("tool_result", ANSWER)],
            [
                {"role": "assistant", "content": [{"type": "text", "text": "I look"}, CALL]},
                {"role": "user", "content": [ANSWER]},
            ],
            id="a call stands in its assistant turn",
        ),
        pytest.param(
            [
                event("tool_use", CALL),
                event("tool_use", {**CALL, "id": "t2"}),
                event("tool_result", ANSWER),
                event("tool_result", {**ANSWER, "tool_use_id": "t2"}),
            ],
            [
                {"role": "assistant", "content": [CALL, {**CALL, "id": "t2"}]},
                {"role": "user", "content": [ANSWER, {**ANSWER, "tool_use_id": "t2"}]},
            ],
            id="parallel calls share a turn",
        ),
        pytest.param(
            [event("tool_use", {"id": "t1", "name": "read", "input": {}}), event("tool_result", "plain", call="t1")],
            [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "plain"}]},
            ],
            id="bare contents get their block",
        ),
        pytest.param(
            [event("compaction", "what was"), event("message", "go on", "user")],
            [{"role": "user", "content": "what was"}, {"role": "user", "content": "go on"}],
            id="a compaction is the first user message",
        ),
        pytest.param(
            [event("message", "a", "user"), event("note", {"retry": 1}), event("message", "b", "assistant")],
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
            id="notes are not sent",
        ),
        pytest.param(
            [
                event("message", [{"type": "thinking", "thinking": "x", "signature": "s"}], "assistant"),
                event("message", [{"type": "text", "text": "y"}], "assistant"),
            ],
            [
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": "x", "signature": "s"}, {"type": "text", "text": "y"}],
                }
            ],
            id="one answer that arrived block by block",
        ),
    ],
)
def test_messages(events, messages):
    assert to_anthropic(events)["messages"] == messages


def test_system_texts_stand_apart():
    window = to_anthropic([event("message", "be kind", "system"), event("message", "hi", "user")])

    assert window == {"system": "be kind", "messages": [{"role": "user", "content": "hi"}]}


def test_system_blocks_stay_blocks():
    blocks = [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]

    assert to_anthropic([event("message", blocks, "system")])["system"] == blocks


def test_the_last_compaction_cuts_and_system_texts_survive():
    events = [
        event("message", "rules", "system", id="s"),
        event("message", "old", "user", id="a"),
        event("compaction", "first", id="c1"),
        event("message", "newer", "user", id="b"),
        event("compaction", "second", id="c2"),
        event("message", "now", "user", id="d"),
    ]

    assert [e.id for e in cut_at_compaction(events)] == ["s", "c2", "d"]


def test_unpaired_calls_and_answers_are_named():
    events = [event("tool_use", CALL), event("tool_result", {**ANSWER, "tool_use_id": "other"})]

    unpaired = find_unpaired(events)

    assert unpaired.tool_uses == ("t1",)
    assert unpaired.tool_results == ("other",)


@pytest.mark.parametrize("content", ["text", None, 5, [], ["x"], {"a": 1}, [{"type": "text"}]])
def test_contents_of_any_shape_hold_no_calls(content):
    assert call_ids("message", content) == ([], [])
