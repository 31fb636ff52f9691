"""From events to the messages that a provider's API takes, without losing or inventing any of them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memoryhub.common.recall_marks import recalled_bytes
from memoryhub.session_cache.domain.event_tree import NOTE


@dataclass(frozen=True, slots=True)
class WindowEvent:
    """One event of a window, its content decoded."""

    id: str
    kind: str
    role: str
    content: Any
    tool_call_id: str = ""
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Unpaired:
    """Tool calls without a result, and results without their call, by call id: the provider refuses such a request."""

    tool_uses: tuple[str, ...]
    tool_results: tuple[str, ...]


def cut_at_compaction(events: Sequence[WindowEvent]) -> list[WindowEvent]:
    """Return the window from its last compaction on; system texts before it stay, for they are not conversation."""
    start = max((i for i, event in enumerate(events) if event.kind == "compaction"), default=0)
    kept = [event for event in events[:start] if event.role == "system" and event.kind != "compaction"]
    return [event for event in (*kept, *events[start:]) if event.kind != NOTE]


def to_anthropic(events: Iterable[WindowEvent]) -> dict[str, Any]:
    """Return {system, messages}: tool calls in their assistant turn, results in their user turn, a compaction first."""
    system: list[Any] = []
    messages: list[dict[str, Any]] = []
    last_kind = ""
    for event in events:
        if event.kind == NOTE:
            continue
        if event.kind == "message" and event.role == "system":
            system.append(event.content)
            continue
        role, blocks = _blocks(event)
        if messages and _continues(messages[-1], last_kind, event, role):
            messages[-1] = {"role": role, "content": [*as_blocks(messages[-1]["content"]), *as_blocks(blocks)]}
        else:
            messages.append({"role": role, "content": blocks})
        last_kind = event.kind
    return {"system": _joined(system), "messages": messages}


def _continues(message: dict[str, Any], last_kind: str, event: WindowEvent, role: str) -> bool:
    if message["role"] != role or last_kind == "compaction":
        return False
    if event.kind == "tool_use" or last_kind == "tool_use":
        return True  # one answer of the model: its text and its calls
    if event.kind == "tool_result":
        return last_kind == "tool_result"
    # One answer that arrived block by block, as transcripts keep it.
    return role == "assistant" and isinstance(message["content"], list) and isinstance(event.content, list)


def _blocks(event: WindowEvent) -> tuple[str, Any]:
    if event.kind == "tool_use":
        return "assistant", [_tool_block(block, event) for block in as_blocks(event.content, "tool_use")]
    if event.kind == "tool_result":
        return "user", _result_blocks(event)
    if event.kind == "compaction":
        return "user", _message_content(event.content)
    return event.role or "user", _message_content(event.content)


def _message_content(content: Any) -> Any:
    if isinstance(content, dict) and "content" in content and "type" not in content:
        return content["content"]  # a whole message was stored: {"role", "content"}
    if isinstance(content, dict):
        return [content] if "type" in content else [{"type": "text", "text": _text_of(content)}]
    return content if isinstance(content, str | list) else _text_of(content)


def _tool_block(block: Any, event: WindowEvent) -> Any:
    if not isinstance(block, dict):
        return block
    return block if block.get("type") else {"type": "tool_use", **block}


def _result_blocks(event: WindowEvent) -> list[Any]:
    content = event.content
    items = content if isinstance(content, list) else [content]
    if items and all(isinstance(item, dict) and item.get("type") == "tool_result" for item in items):
        return list(items)
    if isinstance(content, dict) and "tool_use_id" in content:
        return [{"type": "tool_result", **content}]
    inner = content if isinstance(content, str | list) else _text_of(content)
    return [{"type": "tool_result", "tool_use_id": event.tool_call_id, "content": inner}]


def as_blocks(content: Any, kind: str = "text") -> list[Any]:
    """Return a message's content as blocks; a bare text is one text block."""
    if isinstance(content, list):
        return list(content)
    if isinstance(content, dict):
        return [content]
    return [{"type": "text", "text": content if isinstance(content, str) else _text_of(content)}]


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _joined(system: list[Any]) -> Any:
    if all(isinstance(part, str) for part in system):
        return "\n\n".join(system)
    return [block for part in system for block in as_blocks(part)]


def call_ids(event_kind: str, content: Any, tool_call_id: str = "") -> tuple[list[str], list[str]]:
    """Return the ids of the tool calls made, and of those answered, in one event."""
    made, answered = [], []
    for block in content if isinstance(content, list) else [content]:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use" or (event_kind == "tool_use" and "type" not in block):
            made.append(str(block.get("id") or tool_call_id))
        elif block.get("type") == "tool_result" or (event_kind == "tool_result" and "tool_use_id" in block):
            answered.append(str(block.get("tool_use_id") or tool_call_id))
    if event_kind == "tool_use" and not made and tool_call_id:
        made.append(tool_call_id)
    if event_kind == "tool_result" and not answered and tool_call_id:
        answered.append(tool_call_id)
    return [i for i in made if i], [i for i in answered if i]


def find_unpaired(events: Iterable[WindowEvent]) -> Unpaired:
    """Return the tool calls of a window whose result is missing, and the results whose call is."""
    open_calls: dict[str, None] = {}
    stray: list[str] = []
    for event in events:
        if type(event.content) is str and not event.tool_call_id:
            continue  # most events: a text calls nothing and answers nothing
        made, answered = call_ids(event.kind, event.content, event.tool_call_id)
        for call in answered:
            if call in open_calls:
                del open_calls[call]
            else:
                stray.append(call)
        open_calls.update(dict.fromkeys(made))
    return Unpaired(tuple(open_calls), tuple(stray))


def part_of(kind: str, role: str) -> str:
    """Return which part of the window an event belongs to, for the bar: system, tools, summary, or history."""
    if kind == "compaction":
        return "summary"
    if role == "system":
        return "system"
    return "tools" if kind in ("tool_use", "tool_result") else "history"


def memory_tokens(content: bytes, tokens: int) -> int:
    """Return how many of an event's tokens are recalled memories: their share of its bytes."""
    recalled = recalled_bytes(content)
    return round(tokens * recalled / len(content)) if recalled else 0
