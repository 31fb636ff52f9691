"""Usage reports as agents send them."""

from typing import Any


def make_usage(**changes: Any) -> dict[str, Any]:
    """3 input, 10k written for an hour, 20k read, 5,000 output: 0.184012 USD on Opus 5.5."""
    usage = {
        "input_tokens": 3,
        "output_tokens": 5000,
        "cache_creation_input_tokens": 10_000,
        "cache_read_input_tokens": 20_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 10_000},
    }
    return {**usage, **changes}


def make_report(message_id: str = "msg_1", **changes: Any) -> dict[str, Any]:
    report = {
        "message_id": message_id,
        "model": "claude-opus-5-5",
        "started_at": "2026-11-10T10:00:00Z",
        "session": "s1",
        "agent": "main",
        "project": "web",
        "user": "ana",
        "usage": make_usage(),
    }
    return {**report, **changes}


def plain_usage(tokens: int) -> dict[str, int]:
    """Uncached input only: 4 USD per million on Opus 5.5."""
    return {"input_tokens": tokens, "output_tokens": 0}
