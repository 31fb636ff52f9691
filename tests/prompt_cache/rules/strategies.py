"""Random but legal Messages requests: every kind of block, tools of the provider and of one's own, each form of system prompt."""

from typing import Any

from hypothesis import strategies as st

from memoryhub.prompt_cache.domain.blocks import THINKING_TYPES
from memoryhub.prompt_cache.domain.rulebook import MODEL_FACTS, model_facts
from tests.prompt_cache.rules.cases import Body

MODELS = st.sampled_from([*sorted(MODEL_FACTS), "claude-who-knows"])
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
SCALARS = st.one_of(
    st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), WORDS, st.none()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def texts(draw: Any) -> Body:
    return {"type": "text", "text": draw(WORDS)}


OWN_TOOLS = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
# Tools that the provider defines: they have no description of ours, and an MCP toolset not even a name.
PROVIDER_TOOLS: list[Body] = [
    {"type": "bash_20250124", "name": "bash"},
    {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
    {"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768},
    {"type": "code_execution_20250825", "name": "code_execution"},
    {"type": "mcp_toolset", "mcp_server_name": "files"},
]


@st.composite
def tools(draw: Any) -> list[Body]:
    own = [
        {
            **draw(st.sampled_from([{}, {"type": "custom"}, {"strict": True}])),
            "name": name,
            "description": draw(WORDS),
            "input_schema": {"type": "object", "properties": draw(st.dictionaries(WORDS, JSON, max_size=3))},
        }
        for name in draw(st.lists(OWN_TOOLS, max_size=4, unique=True))
    ]
    theirs = draw(st.lists(st.sampled_from(PROVIDER_TOOLS), max_size=2, unique_by=str))
    return [*own, *(dict(tool) for tool in theirs)]


def _of(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Body]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


def images() -> st.SearchStrategy[Body]:
    return _of("image", source=_of("base64", media_type=st.just("image/png"), data=WORDS))


def documents() -> st.SearchStrategy[Body]:
    return _of("document", title=WORDS, source=_of("text", media_type=st.just("text/plain"), data=WORDS))


def search_results() -> st.SearchStrategy[Body]:
    return _of("search_result", source=WORDS, title=WORDS, content=st.lists(texts(), min_size=1, max_size=2))


def user_block(*, pictures: bool = False) -> st.SearchStrategy[Body]:
    inner = st.one_of(texts(), documents(), search_results(), *([images()] if pictures else []))
    result = _of(
        "tool_result", tool_use_id=st.just("tu"), content=st.one_of(WORDS, st.lists(inner, min_size=1, max_size=2))
    )
    failed = _of("tool_result", tool_use_id=st.just("tu"), content=WORDS, is_error=st.booleans())
    return st.one_of(inner, result, failed)


def assistant_block(*, thinks: bool = False) -> st.SearchStrategy[Body]:
    given = st.dictionaries(WORDS, JSON, max_size=3)
    found = st.lists(_of("web_search_result", url=WORDS, title=WORDS, encrypted_content=WORDS), max_size=2)
    kinds = [
        texts(),
        _of("tool_use", id=st.just("tu"), name=st.just("read"), input=given),
        _of("server_tool_use", id=st.just("su"), name=st.just("web_search"), input=given),
        _of("web_search_tool_result", tool_use_id=st.just("su"), content=found),
        _of("mcp_tool_use", id=st.just("mu"), name=st.just("look"), server_name=st.just("files"), input=given),
        _of("mcp_tool_result", tool_use_id=st.just("mu"), content=st.lists(texts(), min_size=1, max_size=2)),
    ]
    if thinks:
        kinds += [_of("thinking", thinking=WORDS, signature=WORDS), _of("redacted_thinking", data=WORDS)]
    return st.one_of(kinds)


@st.composite
def messages(draw: Any, least: int = 1, *, pictures: bool = False, thinks: bool = False) -> list[Body]:
    """Turns of user and assistant, now and then a system message between them."""
    result = []
    for turn in range(draw(st.integers(least, 6))):
        block = assistant_block(thinks=thinks) if turn % 2 else user_block(pictures=pictures)
        content: Any = draw(st.one_of(WORDS, st.lists(block, min_size=1, max_size=4)))
        result.append({"role": "assistant" if turn % 2 else "user", "content": content})
        if not turn % 2 and draw(st.integers(0, 9)) == 0:
            result.append(
                {"role": "system", "content": draw(st.one_of(WORDS, st.lists(texts(), min_size=1, max_size=2)))}
            )
    return result


def keeps_thinking(model: str) -> bool:
    """Whether thinking blocks stay in the prompt; other models drop them when a plain user message follows."""
    facts = model_facts(model)
    return facts is None or facts.keeps_thinking


def has_pictures(value: Any) -> bool:
    """Whether there is an image: where the first one comes, all messages are rendered anew."""
    if isinstance(value, dict):
        return value.get("type") == "image" or any(map(has_pictures, value.values()))
    return isinstance(value, list) and any(map(has_pictures, value))


@st.composite
def bodies(draw: Any) -> Body:
    """A request without markers."""
    model = draw(MODELS)
    body = {
        "model": model,
        "max_tokens": draw(st.integers(1, 9999)),
        "tools": draw(tools()),
        "messages": draw(messages(pictures=draw(st.booleans()), thinks=keeps_thinking(model))),
    }
    system = draw(st.one_of(st.none(), WORDS, st.lists(texts(), max_size=3)))
    return body if system is None else body | {"system": system}


def markable(body: Body) -> list[Body]:
    """Return every block that may carry a marker, in rendered order."""
    system = body["system"] if isinstance(body.get("system"), list) else []
    content = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [*body["tools"], *system, *(block for block in content if block["type"] not in THINKING_TYPES)]


def last_cacheable(body: Body) -> Body:
    """Return the block that automatic caching marks; a text that stands for a block has no marker of its own."""
    for message in reversed(body["messages"]):
        if isinstance(message["content"], str):
            return {}
        for block in reversed(message["content"]):
            if block["type"] not in THINKING_TYPES:
                return dict(block)
    return {}


@st.composite
def marked_bodies(draw: Any) -> Body:
    """A request with up to four legal markers, 1h before 5m, perhaps one of them automatic."""
    body = draw(bodies())
    blocks = markable(body)
    automatic = draw(st.sampled_from([None, "5m", "1h"]))
    count = draw(st.integers(0, min(len(blocks), 3 if automatic else 4)))
    chosen = (
        sorted(draw(st.lists(st.integers(0, max(0, len(blocks) - 1)), min_size=count, max_size=count, unique=True)))
        if blocks
        else []
    )
    hours = len(chosen) if automatic == "1h" else draw(st.integers(0, len(chosen)))
    for order, index in enumerate(chosen):
        blocks[index]["cache_control"] = (
            {"type": "ephemeral", "ttl": "1h"}
            if order < hours
            else draw(st.sampled_from([{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "5m"}]))
        )
    if automatic:
        own = last_cacheable(body).get("cache_control")
        body["cache_control"] = own or {"type": "ephemeral", "ttl": automatic}
    return body
