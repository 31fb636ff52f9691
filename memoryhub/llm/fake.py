"""A gateway for tests: gives recorded answers in order and keeps what it was asked."""

from dataclasses import dataclass, field
from typing import Any

from memoryhub.llm.gateway import Answer


@dataclass
class FakeGateway:
    answers: list[dict[str, Any]]
    asked: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, *, system: str, prompt: str, schema: dict[str, Any], max_tokens: int) -> Answer:
        self.asked.append({"system": system, "prompt": prompt, "schema": schema, "max_tokens": max_tokens})
        return Answer(self.answers[len(self.asked) - 1], "recorded")
