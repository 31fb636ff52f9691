"""One model under many names."""

import pytest

from memoryhub.prompt_cache.domain.model_ids import ModelId, normalise_model


@pytest.mark.parametrize(
    ("raw", "name", "region"),
    [
        ("claude-opus-5-5", "claude-opus-5-5", ""),
        ("claude-opus-5-5[1m]", "claude-opus-5-5", ""),
        ("anthropic/claude-opus-5-5", "claude-opus-5-5", ""),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", ""),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5", ""),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", ""),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "us"),
        ("eu.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", "eu"),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5", ""),
        ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "us-gov"),
        ("apac.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", "apac"),
        ("bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", "us"),
        ("vertex_ai/claude-opus-4-1@20250805", "claude-opus-4-1", ""),
        ("claude-haiku-4-5-20251001[1m]", "claude-haiku-4-5", ""),
        ("us.claude-opus-5-5", "claude-opus-5-5", "us"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", "us"),
        ("  claude-opus-5-5 ", "claude-opus-5-5", ""),
        ("Claude-Opus-5-5", "claude-opus-5-5", ""),
        ("gpt-99", "gpt-99", ""),
        ("us.meta.llama-9", "us.meta.llama-9", ""),
        ("", "unknown", ""),
        ("[1m]", "unknown", ""),
    ],
)
def test_wrappers_come_off_and_the_region_is_kept(raw: str, name: str, region: str) -> None:
    assert normalise_model(raw) == ModelId(name, region)


def test_a_name_that_merely_resembles_a_model_stays_itself() -> None:
    assert normalise_model("claude-opus-5-5-mini").name == "claude-opus-5-5-mini"
