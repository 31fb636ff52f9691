"""Reading a Messages request body into blocks and parameters.

`read_prompt` is the one way in. It checks the shape, so that everything behind it may rely on it, and it never changes the
request.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence

from memoryhub.prompt_cache.domain import rulebook
from memoryhub.prompt_cache.domain.blocks import (
    THINKING_TYPES,
    Block,
    Json,
    Params,
    Prompt,
    block_digest,
    dump,
    nested_blocks,
    prompt_part,
    without,
)
from memoryhub.prompt_cache.domain.model_ids import normalise_model

MAX_DEPTH = 100  # levels of nesting in one request
IMAGE_BYTES = 6_000  # an image weighs about 1,500 tokens, however long its base64 text is
DOCUMENT_BASE64_PER_BYTE = 10  # a PDF's base64 text is about ten times as long as the text the model reads
_WEB_TOOL_PREFIXES = ("web_search", "web_fetch")


class BadRequestBody(ValueError):
    """The body is not a Messages request; `path` names the place."""

    def __init__(self, path: str, expected: str) -> None:
        super().__init__(f"{path or 'The body'} must be {expected}.")
        self.path = path
        self.expected = expected


def read_prompt(body: Json, *, model: str = "") -> Prompt:
    """Return the request as the cache sees it, or raise BadRequestBody naming what is not a Messages request."""
    check_shape(body)
    model = str(body.get("model") or model)
    blocks = [*_tool_blocks(body), *_system_blocks(body), *_message_blocks(body, model)]
    return Prompt(
        blocks=tuple(blocks),
        params=_read_params(body, model),
        automatic_ttl=marker_ttl(body),
        last_message=len(body.get("messages") or ()) - 1,
        drops_thinking=_drops_thinking(body, model),
    )


def check_shape(body: Json) -> None:
    """Raise BadRequestBody unless tools, system and messages have the types that the Messages API defines."""
    if not isinstance(body, dict):
        raise BadRequestBody("", "a JSON object")
    if _deeper_than(body, MAX_DEPTH):
        raise BadRequestBody("", f"nested at most {MAX_DEPTH} levels deep")
    if not any(key in body for key in ("tools", "system", "messages")):
        raise BadRequestBody("messages", "present")
    for key in ("model", "speed"):
        if not isinstance(body.get(key) or "", str):
            raise BadRequestBody(key, "a text")
    for key in ("thinking", "tool_choice", "output_config", "context_management"):
        if not isinstance(body.get(key) or {}, dict):
            raise BadRequestBody(key, "an object")
    _check_blocks(body.get("tools"), "tools")
    if not isinstance(body.get("system"), str):
        _check_blocks(body.get("system"), "system")
    _check_blocks(body.get("messages"), "messages")
    for index, message in enumerate(body.get("messages") or ()):
        path = f"messages[{index}]"
        if not isinstance(message.get("role"), str):
            raise BadRequestBody(f"{path}.role", "a text")
        if not isinstance(message.get("content"), str):
            _check_blocks(message.get("content"), f"{path}.content")


def _check_blocks(value: Json, path: str) -> None:
    if value is None:
        return
    if not isinstance(value, list):
        raise BadRequestBody(path, "a list")
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise BadRequestBody(f"{path}[{index}]", "an object")


def _deeper_than(value: Json, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def marker_ttl(holder: Json) -> str | None:
    """Return the TTL of a well-formed `cache_control` on this object, else None."""
    return read_ttl(holder.get("cache_control"))


def read_ttl(control: Json) -> str | None:
    """Return 5m or 1h, None where this is not what the provider accepts as `cache_control`."""
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return None
    ttl = control.get("ttl")
    if ttl is None:
        return "5m"
    return ttl if isinstance(ttl, str) and ttl in rulebook.TTL_SECONDS else None


def is_web_tool(tool: Json) -> bool:
    """Return whether switching this tool edits the system part rather than the tools."""
    return str(tool.get("type") or "").startswith(_WEB_TOOL_PREFIXES)


def _tool_blocks(body: Json) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or ()):
        if tool.get("defer_loading") is True or is_web_tool(tool):
            continue
        data = dump(without(tool, "cache_control", *(("defer_loading",) if tool.get("defer_loading") is False else ())))
        yield Block(
            "tools", f"tools[{index}]", "tool", "", block_digest(b"t", data), len(data), marker_ttl(tool), source=tool
        )


def _system_blocks(body: Json) -> Iterator[Block]:
    system = body.get("system")
    if isinstance(system, str):
        if system:
            yield _text_block("system", "system", "", -1, system)
        return
    for index, block in enumerate(system or ()):
        yield _content_block("system", f"system[{index}]", "", -1, block)


def _message_blocks(body: Json, model: str) -> Iterator[Block]:
    messages = body.get("messages") or ()
    strip_before = _thinking_end(messages, model)
    for index, message in enumerate(messages):
        if clears_itself(message):
            continue
        role, content = message["role"], message.get("content")
        if isinstance(content, str):
            yield _text_block("messages", f"messages[{index}].content", role, index, content)
            continue
        for inner, block in enumerate(content or ()):
            if index < strip_before and block.get("type") in THINKING_TYPES:
                continue
            yield _content_block("messages", f"messages[{index}].content[{inner}]", role, index, block)


def _thinking_end(messages: Sequence[Json], model: str) -> int:
    """Return the index of the message before which the model shows no thinking blocks."""
    facts = rulebook.model_facts(model)
    return _last_plain_user_message(messages) if facts and not facts.keeps_thinking else -1


def _drops_thinking(body: Json, model: str) -> bool:
    messages = body.get("messages") or ()
    return any(
        block.get("type") in THINKING_TYPES
        for message in messages[: max(0, _thinking_end(messages, model))]
        if isinstance(message.get("content"), list)
        for block in message["content"]
    )


def clears_itself(message: Json) -> bool:
    """Return whether the message is shown for one turn only and so is no part of a cached prefix."""
    return message.get("clear_at") == "next_user_message"


def _last_plain_user_message(messages: Sequence[Json]) -> int:
    """Return the index of the last user message with more than tool results; older models drop thinking before it."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index]["role"] == "user" and is_plain_user_message(messages[index]):
            return index
    return -1


def is_plain_user_message(message: Json) -> bool:
    content = message.get("content")
    return isinstance(content, str) or any(block.get("type") != "tool_result" for block in content or ())


def _text_block(section: str, path: str, role: str, message: int, text: str) -> Block:
    data = dump({"type": "text", "text": text})
    # A string cannot carry a marker itself, but the one text block that it stands for can.
    return Block(
        section,
        path,
        "text",
        role,
        block_digest(role.encode("utf-8", "surrogatepass"), data),
        _text_weight(text, data),
        None,
        message,
        text != "",
        text,
    )


def _content_block(section: str, path: str, role: str, message: int, block: Json) -> Block:
    kind = str(block.get("type") or "text")
    data = dump(prompt_part(block))
    carries = kind not in THINKING_TYPES and not (kind == "text" and block.get("text") == "")
    text = block.get("text")
    weight = _text_weight(text, data) if kind == "text" and isinstance(text, str) else _media_weight(block, kind, data)
    return Block(
        section,
        path,
        kind,
        role,
        block_digest(role.encode("utf-8", "surrogatepass"), data),
        weight,
        marker_ttl(block),
        message,
        carries,
        block,
    )


def _text_weight(text: str, data: bytes) -> int:
    return len(text) if text.isascii() else len(data)


def _media_weight(block: Json, kind: str, data: bytes) -> int:
    weight = len(data)
    for part in (block, *(item for item in nested_blocks(block) if isinstance(item, dict))):
        part_kind, source = part.get("type"), part.get("source")
        encoded = source.get("data") if isinstance(source, dict) and source.get("type") == "base64" else None
        size = len(encoded) if isinstance(encoded, str) else 0
        if part_kind == "image":
            weight += IMAGE_BYTES - size
        elif size:
            weight += size // DOCUMENT_BASE64_PER_BYTE - size
    return max(weight, 1)


# --- Parameters ------------------------------------------------------------------------------------------------------


def _read_params(body: Json, model: str) -> Params:
    name = normalise_model(model)
    choice = body.get("tool_choice") or {}
    output = body.get("output_config") or {}
    return Params(
        model=name.name if model else "",
        region=name.region,
        speed=str(body.get("speed") or rulebook.DEFAULT_SPEED),
        thinking=_canonical(without(body.get("thinking") or {}, "display")),
        effort=str(output.get("effort") or rulebook.DEFAULT_EFFORT),
        tool_choice=_canonical(
            {key: choice[key] for key in ("type", "name") if key in choice and choice[key] != "auto"}
        )
        or "auto",
        disable_parallel=choice.get("disable_parallel_tool_use") is True,
        web_tools=tuple(_web_tools(body)),
        citations_path=_first_path(body, _has_citations),
        image_path=_first_path(body, _is_image),
        context_management=_canonical(body.get("context_management")),
        output_format=_canonical(output.get("format") or body.get("output_format")),
        task_budget=_canonical(output.get("task_budget")),
        betas=tuple(sorted(beta for beta in _betas(body) if not beta.startswith(rulebook.NEUTRAL_BETAS))),
    )


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True) if value else ""


def _betas(body: Json) -> set[str]:
    betas = body.get("betas")
    if isinstance(betas, str):
        betas = betas.split(",")
    return {beta.strip() for beta in betas if isinstance(beta, str)} if isinstance(betas, list) else set()


def _web_tools(body: Json) -> Iterator[tuple[str, str, str]]:
    for index, tool in enumerate(body.get("tools") or ()):
        if is_web_tool(tool) and tool.get("defer_loading") is not True:
            digest = hashlib.sha256(dump(without(tool, "cache_control"))).hexdigest()[:16]
            yield str(tool.get("name") or tool["type"]), f"tools[{index}]", digest


def _has_citations(block: Json) -> bool:
    switch = block.get("citations")
    return isinstance(switch, dict) and switch.get("enabled") is True


def _is_image(block: Json) -> bool:
    return block.get("type") == "image"


def _first_path(body: Json, matches: Callable[[Json], bool]) -> str:
    sections: list[tuple[str, Json]] = [("system", body.get("system"))]
    sections += [
        (f"messages[{index}].content", message.get("content"))
        for index, message in enumerate(body.get("messages") or ())
    ]
    for prefix, blocks in sections:
        if not isinstance(blocks, list):
            continue
        for index, block in enumerate(blocks):
            if matches(block):
                return f"{prefix}[{index}]"
            for inner, part in enumerate(nested_blocks(block)):
                if isinstance(part, dict) and matches(part):
                    return f"{prefix}[{index}].content[{inner}]"
    return ""
