"""Every change that breaks the cache is named with its cause, its detail, its JSON path and the kind of text."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.prompt_cache.rules.cases import MARK, Body, diagnose_pair, make_body, next_turn, text, tool

Change = Callable[[Body], Any]


def changed(change: Change) -> Body:
    body = next_turn(make_body())
    change(body)
    return body


def put(body: Body, *path: str | int, to: Any) -> None:
    target: Any = body
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = to


CHANGES: list[tuple[str, Change, str, str | None, str | None]] = [
    (
        "clock in system",
        lambda b: put(b, "system", 0, "text", to="You review code at 10:31."),
        "system_changed",
        "edited",
        "system[0].text",
    ),
    ("system block added", lambda b: b["system"].insert(1, text("Be kind.")), "system_changed", "added", "system[1]"),
    ("system block removed", lambda b: b["system"].pop(0), "system_changed", "removed", "system[0]"),
    ("system blocks reordered", lambda b: b["system"].reverse(), "system_changed", "reordered", "system[0]"),
    ("tools reordered", lambda b: b["tools"].reverse(), "tools_changed", "reordered", "tools[0]"),
    ("tool added at the end", lambda b: b["tools"].append(tool("run")), "tools_changed", "added", "tools[3]"),
    ("tool added in the middle", lambda b: b["tools"].insert(1, tool("run")), "tools_changed", "added", "tools[1]"),
    ("tool removed", lambda b: b["tools"].pop(1), "tools_changed", "removed", "tools[1]"),
    ("last tool removed", lambda b: b["tools"].pop(), "tools_changed", "removed", "tools[2]"),
    (
        "tool described anew",
        lambda b: put(b, "tools", 1, "description", to="Search."),
        "tools_changed",
        "edited",
        "tools[1].description",
    ),
    ("tool renamed", lambda b: put(b, "tools", 2, "name", to="change"), "tools_changed", "edited", "tools[2].name"),
    (
        "schema keys in another order",
        lambda b: put(
            b, "tools", 0, "input_schema", "properties", to={"limit": {"type": "integer"}, "path": {"type": "string"}}
        ),
        "tools_changed",
        "key_order",
        "tools[0].input_schema.properties",
    ),
    (
        "schema type changed",
        lambda b: put(b, "tools", 1, "input_schema", "properties", "limit", "type", to="number"),
        "tools_changed",
        "edited",
        "tools[1].input_schema.properties.limit.type",
    ),
    ("model", lambda b: put(b, "model", to="claude-sonnet-5-5"), "model_changed", "edited", "model"),
    ("region", lambda b: put(b, "model", to="us.anthropic.claude-opus-5-5"), "model_changed", "edited", "model"),
    ("speed", lambda b: put(b, "speed", to="fast"), "speed_changed", "edited", "speed"),
    (
        "web search on",
        lambda b: b["tools"].append({"type": "web_search_20250305", "name": "web_search"}),
        "web_tools_changed",
        "added",
        "tools[3]",
    ),
    (
        "thinking on",
        lambda b: put(b, "thinking", to={"type": "enabled", "budget_tokens": 2048}),
        "thinking_changed",
        "edited",
        "thinking",
    ),
    (
        "effort",
        lambda b: put(b, "output_config", to={"effort": "low"}),
        "effort_changed",
        "edited",
        "output_config.effort",
    ),
    (
        "tool choice",
        lambda b: put(b, "tool_choice", to={"type": "any"}),
        "tool_choice_changed",
        "edited",
        "tool_choice",
    ),
    (
        "tool choice names a tool",
        lambda b: put(b, "tool_choice", to={"type": "tool", "name": "read"}),
        "tool_choice_changed",
        "edited",
        "tool_choice",
    ),
    (
        "parallel tools off",
        lambda b: put(b, "tool_choice", to={"type": "auto", "disable_parallel_tool_use": True}),
        "tool_choice_changed",
        "edited",
        "tool_choice.disable_parallel_tool_use",
    ),
    (
        "an image appears",
        lambda b: b["messages"][-1]["content"].insert(
            0, {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
        ),
        "image_toggled",
        "added",
        "messages[4].content[0]",
    ),
    (
        "an image in a tool result",
        lambda b: b["messages"].append(
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "tu_2",
                        "content": [{"type": "image", "source": {"type": "url", "url": "u"}}],
                    }
                ],
            }
        ),
        "image_toggled",
        "added",
        "messages[5].content[0].content[0]",
    ),
    (
        "citations on",
        lambda b: b["messages"][-1]["content"].insert(
            0,
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                "citations": {"enabled": True},
            },
        ),
        "citations_changed",
        "added",
        "messages[4].content[0].citations",
    ),
    (
        "task budget",
        lambda b: put(b, "output_config", to={"task_budget": {"type": "tokens", "total": 9}}),
        "messages_changed",
        "edited",
        "output_config.task_budget",
    ),
    (
        "first message edited",
        lambda b: put(b, "messages", 0, "content", 0, "text", to="Look at app.py."),
        "messages_changed",
        "edited",
        "messages[0].content[0].text",
    ),
    (
        "tool input keys in another order",
        lambda b: put(b, "messages", 1, "content", 0, "input", to={"limit": 10, "path": "main.py"}),
        "messages_changed",
        "key_order",
        "messages[1].content[0].input",
    ),
    (
        "tool result edited",
        lambda b: put(b, "messages", 2, "content", 0, "content", to="print(2)"),
        "messages_changed",
        "edited",
        "messages[2].content[0].content",
    ),
    (
        "role changed",
        lambda b: put(b, "messages", 0, "role", to="system"),
        "messages_changed",
        "edited",
        "messages[0].role",
    ),
    ("turn dropped", lambda b: b["messages"].pop(1), "messages_changed", "removed", "messages[1].content[0]"),
    (
        "history dropped",
        lambda b: put(b, "messages", to=b["messages"][-1:]),
        "messages_changed",
        "edited",
        "messages[0].content[0].text",
    ),
    (
        "turns reordered",
        lambda b: put(b, "messages", slice(0, 3), to=[b["messages"][i] for i in (1, 0, 2)]),
        "messages_changed",
        "reordered",
        "messages[0].content[0]",
    ),
    (
        "a message slipped in",
        lambda b: b["messages"].insert(1, {"role": "user", "content": "By the way"}),
        "messages_changed",
        "added",
        "messages[1].content",
    ),
]


@pytest.mark.parametrize(
    ("change", "cause", "detail", "path"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES]
)
def test_a_change_is_named_at_its_path(change: Change, cause: str, detail: str, path: str) -> None:
    answer = diagnose_pair(make_body(), changed(change))

    assert (answer.verdict, answer.cause, answer.detail, answer.path) == ("miss", cause, detail, path)
    assert answer.fix
    assert answer.missed_tokens == 10_000


def test_a_different_workspace_is_named_before_everything_else() -> None:
    from memoryhub.prompt_cache.domain.doctor import diagnose
    from tests.prompt_cache.rules.cases import make_exchange

    body = make_body()
    answer = diagnose(
        make_exchange(body, write=9000, workspace="a"), make_exchange(next_turn(body), write=9000, workspace="b")
    )

    assert answer.cause == "workspace_changed"


def test_the_earliest_change_is_the_cause_and_the_others_are_listed() -> None:
    def several(body: Body) -> None:
        body["model"] = "claude-sonnet-5-5"
        body["system"][0]["text"] = "You write code."
        body["messages"][0]["content"][0]["text"] = "Look."

    answer = diagnose_pair(make_body(), changed(several))

    assert answer.cause == "model_changed"
    assert answer.also == ("system_changed", "messages_changed")


KINDS = [
    ("Today is 2026-11-28.", "Today is 2026-11-29.", "timestamp"),
    ("Now: 2026-11-29T10:00:00Z", "Now: 2026-11-29T10:00:05Z", "timestamp"),
    ("Now: Sunday, 29 November 2026", "Now: Monday, 30 November 2026", "timestamp"),
    ("It is 10:31 am", "It is 10:32 am", "timestamp"),
    ("t=1764410000", "t=1764410031", "timestamp"),
    ("现在是2026年11月29日", "现在是2026年11月30日", "timestamp"),
    ("id 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "id 7d444840-9dc0-11d1-b245-5ffdce74fad2", "uuid"),
    ("req_01HZX3K9QW7E", "req_01HZX3K9QW8F", "uuid"),
    ("cwd: /home/ana/web", "cwd: /home/bob/web", "path"),
    (r"cwd: C:\work\web", r"cwd: C:\work\api", "path"),
    ("This is turn 7.", "This is turn 8.", "counter"),
    ("Request #41 of the day", "Request #57 of the day", "counter"),
    ("Budget left: 5000 tokens", "Budget left: 1200 tokens", "number"),
    ("Use version 0.5", "Use version 0.7", "number"),
    ("You are kind.", "You are strict.", "text"),
    ("short", "short and longer", "text"),
    ("Be kind.", "Be kind. Now: 2026-11-29T10:31:00Z", "timestamp"),
    ("Be kind, session 3f2504e0-4f89-41d3-9a0c-0305e82c3301.", "Be kind, session .", "uuid"),
]


@pytest.mark.parametrize(("before", "after", "kind"), KINDS)
def test_the_kind_of_the_differing_text_is_named(before: str, after: str, kind: str) -> None:
    first, second = make_body(), next_turn(make_body())
    first["system"][0]["text"], second["system"][0]["text"] = before, after

    answer = diagnose_pair(first, second)

    assert (answer.kind, answer.path) == (kind, "system[0].text")
    assert answer.before is not None
    assert answer.before != answer.after


def test_the_offset_is_the_first_differing_character() -> None:
    first, second = make_body(), next_turn(make_body())
    first["system"][0]["text"], second["system"][0]["text"] = "é 你 at 10:00", "é 你 at 10:01"

    assert diagnose_pair(first, second).offset == len("é 你 at 10:0")


def test_a_string_prompt_has_its_own_path() -> None:
    first, second = make_body(system="You review. It is 10:00"), make_body(system="You review. It is 10:01")
    second["messages"].append({"role": "user", "content": "go"})

    answer = diagnose_pair(first, second)

    assert (answer.cause, answer.path, answer.kind) == ("system_changed", "system", "timestamp")


def test_credentials_never_stand_in_an_excerpt() -> None:
    first, second = make_body(), next_turn(make_body())
    first["system"][0]["text"] = "key sk-ant-REDACTED now 10:00"
    second["system"][0]["text"] = "key sk-ant-REDACTED now 10:01"

    answer = diagnose_pair(first, second)

    assert "abcdefgh" not in f"{answer.before}{answer.after}"
    assert "10:0" in str(answer.before)


def test_an_image_marker_and_tools_marker_do_not_hide_a_change() -> None:
    first = make_body(tools=[tool("read"), tool("grep", cache_control=MARK)])
    second = next_turn(make_body(tools=[tool("read"), tool("grep", description="Other", cache_control=MARK)]))

    assert diagnose_pair(first, second).path == "tools[1].description"
