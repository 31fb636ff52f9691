"""`python -m tests.bench.caching_rules`: diagnosing two long requests, and replaying a long session under all plans."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.bench.throwaway import show

BLOCKS = 200
BODY_BYTES = 800_000
REQUESTS = 500
ROUNDS = 15
START = datetime(2026, 11, 29, 10, tzinfo=UTC)
MARK = {"type": "ephemeral"}


def make_body(blocks: int, size: int) -> dict[str, Any]:
    """A request of so many blocks and bytes: tools, system, and a conversation of texts and tool calls."""
    words = ("the quick brown fox " * (size // blocks // 20 + 1))[: size // blocks]
    tools = [
        {
            "name": f"tool_{n}",
            "description": words,
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }
        for n in range(blocks // 10)
    ]
    system = [{"type": "text", "text": words}, {"type": "text", "text": words, "cache_control": MARK}]
    messages: list[dict[str, Any]] = []
    for number in range(blocks - len(tools) - len(system)):
        if number % 2:
            content = {
                "type": "tool_use",
                "id": f"tu_{number}",
                "name": "tool_0",
                "input": {"path": f"{number}.py", "text": words},
            }
        else:
            content = {"type": "text", "text": f"{number} {words}"}
        messages.append({"role": "assistant" if number % 2 else "user", "content": [content]})
    return {"model": "claude-opus-5-5", "max_tokens": 100, "tools": tools, "system": system, "messages": messages}


def best_of(rounds: int, work: Callable[[], Any]) -> float:
    """Milliseconds of the median round."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def diagnose_pair() -> float:
    from memoryhub.prompt_cache.domain.doctor import diagnose
    from memoryhub.prompt_cache.domain.exchange import Exchange
    from memoryhub.prompt_cache.domain.pricing import Tokens
    from memoryhub.prompt_cache.domain.request_body import read_prompt

    before, after = make_body(BLOCKS, BODY_BYTES), make_body(BLOCKS, BODY_BYTES)
    last = next(message for message in reversed(after["messages"][:-1]) if message["content"][0]["type"] == "text")
    last["content"][0]["text"] = last["content"][0]["text"][:-5] + "other"

    def work() -> None:
        previous = Exchange(read_prompt(before), Tokens(cache_write_5m=200_000), started_at=START)
        current = Exchange(read_prompt(after), Tokens(cache_write_5m=200_000), started_at=START + timedelta(seconds=30))
        answer = diagnose(previous, current)
        assert answer.cause == "messages_changed", answer

    return best_of(ROUNDS, work)


def simulate_session() -> float:
    from memoryhub.prompt_cache.domain.exchange import Tariff
    from memoryhub.prompt_cache.domain.fingerprint import pack, unpack
    from memoryhub.prompt_cache.domain.pricing import make_rates
    from memoryhub.prompt_cache.domain.request_body import read_prompt
    from memoryhub.prompt_cache.domain.simulator import PLANS, known_ends, shape_of, simulate

    body = make_body(40, 40_000)
    stored = []
    for turn in range(REQUESTS):
        body["messages"].append({"role": "user", "content": [{"type": "text", "text": f"turn {turn}"}]})
        stored.append(pack(read_prompt(body | {"cache_control": MARK})))
    tariff = Tariff(make_rates(input=4, output=20))

    def work() -> None:
        prompts = [unpack(one) for one in stored]
        known = known_ends((prompt, None) for prompt in prompts)
        shapes = [
            shape_of(prompt, started_at=START + timedelta(seconds=90 * turn), known=known)
            for turn, prompt in enumerate(prompts)
        ]
        result = simulate(shapes, PLANS, lambda shape, tokens: tariff)
        assert len(result.replays) == 6

    return best_of(3, work) / 1000


def main() -> None:
    """Print both figures."""
    show("diagnose_200_blocks_800_kb", diagnose_pair(), "ms", goal="<= 15")
    show("simulate_500_requests_six_plans", simulate_session(), "s", goal="<= 2")


if __name__ == "__main__":
    main()
