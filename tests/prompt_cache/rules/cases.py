"""Requests and exchanges for the cache's rules: one agent that reviews code, its next turn, and changes planted in it."""

import copy
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from memoryhub.prompt_cache.domain.doctor import Diagnosis, diagnose
from memoryhub.prompt_cache.domain.exchange import Exchange, Tariff, find_tariff
from memoryhub.prompt_cache.domain.pricing import Modifiers, PriceBook, Tokens, read_price_book
from memoryhub.prompt_cache.domain.request_body import read_prompt

START = datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}
Body = dict[str, Any]


def text(words: str, **more: Any) -> Body:
    return {"type": "text", "text": words, **more}


def tool(name: str, **more: Any) -> Body:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
    return {"name": name, "description": f"Use {name}.", "input_schema": schema, **more}


def make_body(**changes: Any) -> Body:
    """The agent's request of turn two, cached up to its last message."""
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 1024,
        "tools": [tool("read"), tool("grep"), tool("edit")],
        "system": [text("You review code."), text("Answer in short sentences.", cache_control=MARK)],
        "messages": [
            {"role": "user", "content": [text("Look at main.py.")]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "tu_1", "name": "read", "input": {"path": "main.py", "limit": 10}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "tu_1", "content": "print(1)", "cache_control": MARK}
                ],
            },
        ],
    }
    return copy.deepcopy(body | changes)


def next_turn(body: Body, words: str = "Now fix it.") -> Body:
    """The same conversation one turn later, the marker moved to its end."""
    later = copy.deepcopy(body)
    for message in later["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    later["messages"].append({"role": "assistant", "content": [text("It prints one.")]})
    later["messages"].append({"role": "user", "content": [text(words, cache_control=MARK)]})
    return later


def make_exchange(
    body: Body | None, *, read: int = 0, write: int = 0, rest: int = 100, write_1h: int = 0, at: float = 0, **more: Any
) -> Exchange:
    """A billed request that began `at` seconds after ten o'clock."""
    return Exchange(
        prompt=read_prompt(body) if body is not None else None,
        tokens=Tokens(input=rest, cache_write_5m=write, cache_write_1h=write_1h, cache_read=read, output=10),
        model=str((body or {}).get("model", "claude-opus-5-5")),
        started_at=START + timedelta(seconds=at),
        **more,
    )


def diagnose_pair(before: Body, after: Body, *, read: int = 0, at: float = 30, **more: Any) -> Diagnosis:
    """The doctor on a request that left 10,000 tokens cached and one that read `read` of them."""
    previous = make_exchange(before, write=10_000)
    current = make_exchange(after, read=read, write=10_200 - read, at=at)
    return diagnose(previous, current, tariff=tariff(), **more)


@cache
def price_book() -> PriceBook:
    folder = Path(__file__).resolve().parents[3] / "fixtures" / "prices"
    return read_price_book(json.loads((folder / "anthropic.json").read_text()))


def tariff(
    model: str = "claude-opus-5-5", at: datetime = START, prompt_tokens: int = 10_000, **modifiers: str
) -> Tariff:
    found = find_tariff(price_book(), model, at, prompt_tokens, Modifiers(**modifiers))
    assert found is not None
    return found
