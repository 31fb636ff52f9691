"""Random but legal Messages requests."""

from typing import Any

from hypothesis import strategies as st

from tests.prompt_cache.rules.cases import Body

MODELS = st.sampled_from(
    [
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "claude-opus-4-6",
        "claude-haiku-4-5",
        "claude-who-knows",
    ]
)
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


@st.composite
def tools(draw: Any) -> list[Body]:
    names = draw(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), max_size=4, unique=True))
    return [
        {
            "name": name,
            "description": draw(WORDS),
            "input_schema": {"type": "object", "properties": draw(st.dictionaries(WORDS, JSON, max_size=3))},
        }
        for name in names
    ]


def user_block() -> st.SearchStrategy[Body]:
    result = st.builds(lambda words: {"type": "tool_result", "tool_use_id": "tu", "content": words}, WORDS)
    return st.one_of(
        texts(),
        result,
        st.builds(lambda inner: {"type": "tool_result", "tool_use_id": "tu", "content": [inner]}, texts()),
    )


def assistant_block() -> st.SearchStrategy[Body]:
    call = st.builds(
        lambda value: {"type": "tool_use", "id": "tu", "name": "read", "input": value},
        st.dictionaries(WORDS, JSON, max_size=3),
    )
    return st.one_of(texts(), call)


@st.composite
def messages(draw: Any, least: int = 1) -> list[Body]:
    result = []
    for turn in range(draw(st.integers(least, 6))):
        block = assistant_block() if turn % 2 else user_block()
        content: Any = draw(st.one_of(WORDS, st.lists(block, min_size=1, max_size=4)))
        result.append({"role": "assistant" if turn % 2 else "user", "content": content})
    return result


@st.composite
def bodies(draw: Any) -> Body:
    """A request without markers."""
    return {
        "model": draw(MODELS),
        "max_tokens": draw(st.integers(1, 9999)),
        "tools": draw(tools()),
        "system": draw(st.one_of(WORDS, st.lists(texts(), max_size=3))),
        "messages": draw(messages()),
    }


def markable(body: Body) -> list[Body]:
    """Return every block that may carry a marker, in rendered order."""
    system = body["system"] if isinstance(body["system"], list) else []
    content = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [*body["tools"], *system, *content]


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
        last = body["messages"][-1]["content"]
        own = last[-1].get("cache_control") if isinstance(last, list) else None
        body["cache_control"] = own or {"type": "ephemeral", "ttl": automatic}
    return body
