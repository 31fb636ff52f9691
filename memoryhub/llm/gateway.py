"""Asking the provider for an answer of a given shape. The only caller of the anthropic SDK as a client.

The SDK is imported late: it takes more than a second, which only a hub that asks should pay.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from django.conf import settings

from memoryhub.common import errors

TIMEOUT_SECONDS = 120.0
MAX_RETRIES = 2


class NoProviderKey(errors.Conflict):
    slug = "no-provider-key"
    title = "The hub has no provider key"


class ProviderFailed(errors.Unavailable):
    slug = "provider-failed"
    title = "The provider did not answer"


class ProviderRefused(errors.Invalid):
    slug = "provider-refused"
    title = "The provider refused the request"


class UnusableAnswer(errors.Unavailable):
    slug = "unusable-answer"
    title = "The provider's answer can't be used"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the provider said, as data, and what it counted."""

    data: dict[str, Any]
    model: str
    usage: dict[str, int] = field(default_factory=dict)


class Gateway(Protocol):
    """What flows ask of a provider; llm/fake.py answers in tests."""

    def ask(self, *, system: str, prompt: str, schema: dict[str, Any], max_tokens: int) -> Answer:
        """Return an answer that has the schema's shape."""
        ...


class AnthropicGateway:
    """The Messages API with structured output."""

    def __init__(self, key: str, base_url: str, model: str) -> None:
        self.key, self.base_url, self.model = key, base_url, model

    def ask(self, *, system: str, prompt: str, schema: dict[str, Any], max_tokens: int) -> Answer:
        import anthropic

        client = anthropic.Anthropic(
            api_key=self.key, base_url=self.base_url, timeout=TIMEOUT_SECONDS, max_retries=MAX_RETRIES
        )
        try:
            message = client.messages.create(
                model=self.model,
                max_tokens=max_tokens,
                system=system,
                messages=[{"role": "user", "content": prompt}],
                output_config={"format": {"type": "json_schema", "schema": schema}},
            )
        except anthropic.APIStatusError as error:
            kind = (
                ProviderFailed if error.status_code in (408, 409, 429) or error.status_code >= 500 else ProviderRefused
            )
            raise kind(f"The provider answered {error.status_code}: {error.message[:300]}") from error
        except anthropic.APIError as error:
            raise ProviderFailed(f"The provider could not be reached: {error}") from error
        finally:
            client.close()
        if message.stop_reason == "max_tokens":
            raise UnusableAnswer("The answer was cut off; extract from a shorter stretch of the session.")
        text = "".join(block.text for block in message.content if block.type == "text")
        usage = {"input_tokens": message.usage.input_tokens, "output_tokens": message.usage.output_tokens}
        return Answer(parse_answer(text, schema.get("required", ())), message.model, usage)


def parse_answer(text: str, required: Sequence[str]) -> dict[str, Any]:
    """The answer's JSON object; raises UnusableAnswer for anything else."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UnusableAnswer("The answer is not JSON.") from error
    if not isinstance(data, dict) or any(name not in data for name in required):
        raise UnusableAnswer("The answer does not have the shape that was asked for.")
    return data


def has_provider_key() -> bool:
    return bool(settings.ANTHROPIC_API_KEY)


def current() -> Gateway:
    """The gateway that the settings describe; raises NoProviderKey where there is none."""
    if not settings.ANTHROPIC_API_KEY:
        raise NoProviderKey(
            "Extraction asks the provider, and this hub has no key: set MEMORYHUB_ANTHROPIC_API_KEY. "
            "Everything else works without one."
        )
    return AnthropicGateway(settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_UPSTREAM, settings.EXTRACTION_MODEL)
