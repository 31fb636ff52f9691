"""What the validator, the planner and why-not say is English over the API and the viewer's language on pages."""

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import translation
from django.utils.translation import gettext

from memoryhub.prompt_cache.domain.validator import validate
from memoryhub.workspaces.models import Workspace
from tests.conftest import ApiClient
from tests.prompt_cache.rules.cases import HOUR, MARK, make_body, text
from tests.prompt_cache.rules.test_validator import ERRORS
from tests.web.memory_cast import make_memory

WRONG_ORDER = make_body(system=[text("You review code.", cache_control=MARK), text("Be short.", cache_control=HOUR)])
LONG = "word " * 9_000


@pytest.fixture
def chinese_viewer(viewer: Client) -> Client:
    viewer.post("/preferences", {"language": "zh-hans"})
    return viewer


@pytest.mark.parametrize("body", [row[1] for row in ERRORS if row[2]], ids=[row[0] for row in ERRORS if row[2]])
def test_every_refusal_has_its_chinese_with_the_same_facts(body: Any) -> None:
    for finding in validate(body):
        with translation.override("zh-hans"):
            said = gettext(finding.sentence) % finding.values

        assert said != finding.message
        assert all(str(value) in said and str(value) in finding.message for value in finding.values.values())


def test_findings_are_shown_in_the_viewers_language(chinese_viewer: Client, api: ApiClient) -> None:
    page = chinese_viewer.post("/doctor/check", {"previous": "", "current": json.dumps(WRONG_ORDER)}).content.decode()

    assert "1h 标记不能出现在 5m 标记之后" in page
    assert "must not come after" not in page
    [error] = api.post("/prompt-cache/validate", WRONG_ORDER).json()["errors"]
    assert error["message"] == "A 1h marker must not come after a 5m one; the order is tools, system, messages."


def test_the_planners_reasons_too(chinese_viewer: Client, api: ApiClient) -> None:
    body = make_body(system=[text(LONG)])

    page = chinese_viewer.post("/planner/plan", {"body": json.dumps(body)}).content.decode()

    assert "固定系统提示的结尾" in page
    assert "End of the fixed" not in page
    assert "End of the fixed system prompt" in api.post("/prompt-cache/plan", body).json()["markers"][0]["why"]


@pytest.mark.parametrize(
    ("query", "chinese", "english"),
    [
        (
            "&agent=writer",
            "搜索指定了智能体“writer”；这条记忆的是“ops”。",
            "The search names agent 'writer'; the memory has ops.",
        ),
        ("&tag=none-such", "它没有标签“none-such”。", "It lacks the tag 'none-such'."),
    ],
)
def test_why_a_memory_is_missing_too(
    chinese_viewer: Client, api: ApiClient, workspace: Workspace, query: str, chinese: str, english: str
) -> None:
    memory = make_memory(workspace, "Deploys on Tuesdays.", agent="ops")
    name, _, value = query.strip("&").partition("=")
    asked = {"scope": {"agent": value}} if name == "agent" else {"filters": {"tags": [value]}}

    why = chinese_viewer.get(f"/search?q=deploys{query}&why={memory.public_id}").context["why"]
    answer = api.post("/memories/why-not", {"query": "deploys", "memory_id": memory.public_id, **asked}).json()

    assert (str(why["detail"]), answer["detail"]) == (chinese, english)
