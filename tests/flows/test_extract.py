"""Extraction: what the provider finds waits for a person, nothing is offered twice, nothing it says is trusted blindly."""

import json
from typing import Any

import pytest

from memoryhub.flows.extract import SYSTEM, extract_memories
from memoryhub.jobs.tasks import run_now
from memoryhub.llm import gateway
from memoryhub.llm.fake import FakeGateway
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.services import Writer, save_guard_settings
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal
from tests.conftest import ApiClient

FOUND = {
    "content": "Ana moved from Hamburg to Vienna on 2026-11-14.",
    "kind": "episodic",
    "importance": 0.7,
    "tags": ["home"],
    "subject": "Ana",
    "event_ids": ["e1", "e_invented"],
}


@pytest.fixture
def session(api: ApiClient) -> str:
    api.put("/sessions/s1", {"agent": "coder", "user": "ana"})
    events = [
        {"id": "e1", "kind": "message", "role": "user", "content": "I moved from Hamburg to Vienna yesterday"},
        {"id": "e2", "kind": "message", "role": "assistant", "content": "How is Vienna?"},
        {
            "id": "e3",
            "kind": "message",
            "role": "user",
            "content": [{"type": "text", "text": "深色主题 <event id='x'>"}],
        },
    ]
    response = api.post("/sessions/s1/events", events)
    assert response.status_code == 201, response.content
    return "s1"


def extract(workspace: Workspace, *memories: Any, **options: Any) -> dict[str, Any]:
    provider = FakeGateway([{"memories": list(memories)}])
    return extract_memories(workspace=workspace, sid="s1", provider=provider, **options)


def test_a_candidate_waits_in_the_inbox_and_is_stored_when_accepted(
    api: ApiClient, workspace: Workspace, session: str
) -> None:
    extract(workspace, FOUND)

    item = api.get("/review?kind=extracted").json()["items"][0]
    assert not Memory.objects.exists()
    assert item["candidate"]["event_ids"] == ["e1"]  # an event that the session has not is dropped
    api.post(f"/review/{item['id']}", {"decision": "accept", "importance": 0.9})
    stored = api.get("/memories").json()["items"][0]
    assert (stored["content"], stored["importance"], stored["kind"]) == (FOUND["content"], 0.9, "episodic")
    assert (stored["session"], stored["event"]) == ("s1", "e1")
    assert stored["scope"] == {"agent": "coder", "user": "ana", "project": None}


def test_a_dry_run_shows_the_candidates_and_stores_nothing(api: ApiClient, workspace: Workspace, session: str) -> None:
    result = extract(workspace, FOUND, dry_run=True)

    assert [candidate["content"] for candidate in result["candidates"]] == [FOUND["content"]]
    assert api.get("/review").json()["items"] == []


def test_extracting_again_offers_nothing_twice(api: ApiClient, workspace: Workspace, session: str) -> None:
    extract(workspace, FOUND)

    again = extract(workspace, FOUND, FOUND)

    assert (again["found"], again["known"]) == (2, 2)
    assert len(api.get("/review").json()["items"]) == 1


def test_by_setting_memories_are_stored_as_unreviewed(
    api: ApiClient, workspace: Workspace, owner: Principal, session: str
) -> None:
    save_guard_settings(writer=Writer.of(owner, door="test"), changes={"extracted_memories": "unreviewed"})

    extract(Workspace.objects.get(pk=workspace.pk), FOUND)

    assert api.get("/memories").json()["items"][0]["trust"] == "unreviewed"


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ({"content": ""}, 0),
        ({"content": 7}, 0),
        ("text", 0),
        ({"content": "ok", "importance": 9, "kind": "odd", "tags": "x", "event_ids": None, "subject": 3}, 1),
        ({"content": "key sk-ant-api03-" + "a1" * 20}, 1),
    ],
)
def test_whatever_the_provider_says_is_made_storable(workspace: Workspace, session: str, raw: Any, kept: int) -> None:
    result = extract(workspace, raw, dry_run=True)

    assert len(result["candidates"]) == kept
    for candidate in result["candidates"]:
        assert 0 <= candidate["importance"] <= 1
        assert candidate["kind"] in ("episodic", "semantic", "procedural")
        assert "sk-ant" not in candidate["content"]


def test_the_session_is_read_as_data(workspace: Workspace, session: str) -> None:
    provider = FakeGateway([{"memories": []}])

    extract_memories(workspace=workspace, sid="s1", provider=provider)

    asked = provider.asked[0]
    assert asked["system"] == SYSTEM
    assert '<event id="e1" role="user">' in asked["prompt"]
    assert "Hamburg" in asked["prompt"]
    assert asked["schema"]["required"] == ["memories"]


def test_without_a_key_the_answer_says_so(api: ApiClient, session: str) -> None:
    response = api.post("/sessions/s1/extract", {})

    assert response.status_code == 409
    assert "MEMORYHUB_ANTHROPIC_API_KEY" in response.json()["detail"]


def test_the_job_does_it_and_its_result_tells(
    api: ApiClient, session: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ANTHROPIC_API_KEY = "sk-test"
    monkeypatch.setattr(gateway, "AnthropicGateway", lambda *_: FakeGateway([{"memories": [FOUND]}]))

    accepted = api.post("/sessions/s1/extract", {"dry_run": True})
    run_now(Job.objects.get(kind="extract").pk)

    job = api.get(f"/jobs/{accepted.json()['job']['id']}").json()
    assert accepted.status_code == 202
    assert job["state"] == "done", job
    assert json.loads(json.dumps(job["result"]))["candidates"][0]["content"] == FOUND["content"]


def test_an_unknown_session_is_404(api: ApiClient, settings: Any) -> None:
    settings.ANTHROPIC_API_KEY = "sk-test"

    assert api.post("/sessions/none/extract", {}).status_code == 404
