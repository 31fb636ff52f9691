"""A request's place in its session's tree, by the hashes of its blocks alone."""

from typing import Any

import pytest
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.flows.continued_node import ContinuedNode, find_continued_node
from memoryhub.prompt_cache.models import RequestFingerprint, UsageRecord
from memoryhub.session_cache.services.events import GivenEvent, append_events
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.services import ensure_session
from tests.conftest import ApiClient

USAGE = {"input_tokens": 10, "output_tokens": 5}
TALK = [
    GivenEvent("message", "You help.", id="rules", role="system"),
    GivenEvent("message", "Fix the login.", id="ask", role="user"),
    GivenEvent("message", [{"type": "text", "text": "I look."}], id="say", role="assistant"),
    GivenEvent("tool_use", {"id": "t1", "name": "read", "input": {"b": 1, "a": 2}}, id="call", tool_call_id="t1"),
    GivenEvent("tool_result", "the file", id="result", tool_call_id="t1"),
    GivenEvent("message", "It is mended.", id="done", role="assistant"),
]
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Fix the login."},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 2, "b": 1}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "the file"}]},
]


@pytest.fixture
def session(workspace: Workspace) -> Session:
    session = ensure_session(workspace=workspace, sid="s1")
    append_events(session=session, events=TALK)
    return session


def place_of(api: ApiClient, messages: list[dict[str, Any]], sid: str = "s1") -> ContinuedNode | None:
    number = UsageRecord.objects.count()
    body = {"model": "claude-opus-5-5", "max_tokens": 9, "system": "You help.", "messages": messages}
    report = {"message_id": f"m{number}", "model": "claude-opus-5-5", "session": sid, "usage": USAGE, "request": body}
    assert api.post("/prompt-cache/usage", report).status_code == 201
    return find_continued_node(UsageRecord.objects.get(message_id=f"m{number}"))


def test_a_request_that_goes_on_continues_its_last_event(api: ApiClient, session: Session) -> None:
    assert place_of(api, MESSAGES) == ContinuedNode("result", "", 4, 4)
    more = [*MESSAGES, {"role": "assistant", "content": "It is mended."}, {"role": "user", "content": "Thanks!"}]
    assert place_of(api, more) == ContinuedNode("done", "", 5, 6)


def test_an_edited_event_is_named(api: ApiClient, session: Session) -> None:
    edited = [*MESSAGES[:2], {"role": "user", "content": [{**MESSAGES[2]["content"][0], "content": "another file"}]}]

    assert place_of(api, edited) == ContinuedNode("call", "result", 3, 4)


def test_after_a_rewind_the_way_that_was_taken_counts(api: ApiClient, session: Session) -> None:
    append_events(session=session, events=[GivenEvent("message", "No, stop.", id="stop", role="user", parent_id="say")])
    taken = [*MESSAGES[:1], {"role": "assistant", "content": "I look."}, {"role": "user", "content": "No, stop."}]

    assert place_of(api, taken) == ContinuedNode("stop", "", 3, 3)
    assert place_of(api, MESSAGES) == ContinuedNode("result", "", 4, 4)  # and the abandoned one, for who was on it


def test_a_stranger_to_the_session_has_no_place(api: ApiClient, session: Session) -> None:
    assert place_of(api, [{"role": "user", "content": "Something else."}]) is None
    assert place_of(api, MESSAGES, sid="s2") is None


def test_without_a_body_there_is_none(api: ApiClient, session: Session) -> None:
    place_of(api, MESSAGES)
    RequestFingerprint.objects.all().delete()

    assert find_continued_node(UsageRecord.objects.get()) is None


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(texts=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=8), cut=st.integers(0, 7))
def test_the_first_difference_is_the_one_that_was_planted(
    api: ApiClient, workspace: Workspace, texts: list[str], cut: int
) -> None:
    sid = f"p{Session.objects.count()}"
    session = ensure_session(workspace=workspace, sid=sid)
    roles = ["user", "assistant"]
    append_events(
        session=session,
        events=[
            GivenEvent("message", f"{at}{text}", id=str(at), role=roles[at % 2])
            for at, text in enumerate(text.replace("\0", "") for text in texts)
        ],
    )
    messages = [
        {"role": roles[at % 2], "content": f"{at}{text}"}
        for at, text in enumerate(text.replace("\0", "") for text in texts)
    ]
    if cut < len(messages):
        messages[cut] = {**messages[cut], "content": "planted"}

    place = place_of(api, messages, sid)

    same = min(cut, len(messages))
    changed = str(cut) if cut < len(messages) else ""
    assert place == (ContinuedNode(str(same - 1), changed, same, len(messages)) if same else None)


def test_the_page_links_both(api: ApiClient, viewer: Client, session: Session) -> None:
    edited = [{"role": "user", "content": "Fix the login."}, {"role": "assistant", "content": "I refuse."}]
    place_of(api, edited)

    page = viewer.get(f"/requests/{UsageRecord.objects.get().pk}").content.decode()

    assert 'href="/sessions/s1?at=ask"' in page
    assert 'href="/sessions/s1?at=say"' in page
