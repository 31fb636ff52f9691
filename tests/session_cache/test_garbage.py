"""What is let go of, and what stays reachable."""

from datetime import timedelta

import pytest

from memoryhub.common import clock
from memoryhub.session_cache.models import Blob, Branch, SessionEvent, ToolKey, ToolResult, ToolSpace
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.session_cache.services import garbage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.policies import PolicyChoice, set_tool_policy
from memoryhub.session_cache.services.store import ToolValue, store_tool_result, sweep_expired
from memoryhub.workspaces.services import ensure_session

pytestmark = pytest.mark.django_db
LATER = timedelta(days=40)


@pytest.fixture
def session(workspace):
    session = ensure_session(workspace=workspace, sid="s1")
    append_events(
        session=session, events=[GivenEvent("message", f"text {i}", id=str(i), role="user") for i in range(5)]
    )
    return session


def put(session, number=1, **more):
    owner = __import__("memoryhub.workspaces.principals", fromlist=["Actor"]).Actor("user", "1", "o")
    set_tool_policy(workspace=session.workspace, tool="t", choice=PolicyChoice(cacheable=True), actor=owner)
    call = ToolCall(session.sid, "t", {"n": number})
    return store_tool_result(session=session, call=call, given=ToolValue("v", **more))


def test_expired_results_are_swept_and_say_so(session):
    put(session, 1, ttl_seconds=10)
    put(session, 2)

    with clock.frozen(clock.now() + timedelta(seconds=20)):
        assert sweep_expired() == 1
        assert sweep_expired() == 0
        answer = look_up(workspace=session.workspace, call=ToolCall("s1", "t", {"n": 1}), options=LookupOptions())

    assert answer.reason == "expired"
    assert ToolResult.objects.count() == 1
    assert ToolSpace.objects.get(session=session).used_bytes == 3


def test_a_sweep_is_bounded(session):
    for number in range(7):
        put(session, number, ttl_seconds=1)

    with clock.frozen(clock.now() + timedelta(seconds=5)):
        assert [sweep_expired(limit=3), sweep_expired(limit=3), sweep_expired(limit=3)] == [3, 3, 1]


def test_sessions_are_kept_without_a_retention(session):
    with clock.frozen(clock.now() + LATER):
        assert garbage.forget_old_sessions(days=0) == 0

    assert SessionEvent.objects.count() == 5


def test_an_old_session_goes_with_all_that_it_holds(session, settings):
    settings.SESSION_RETENTION_DAYS = 30
    put(session, depends_on=())

    with clock.frozen(clock.now() + LATER):
        done = garbage.collect_garbage()
        again = garbage.collect_garbage()

    assert (done["sessions"], done["blobs"]) == (1, 5)
    assert again == {"sessions": 0, "blobs": 0, "keys": 0}
    assert not SessionEvent.objects.exists()
    assert not Branch.objects.exists()
    assert not Blob.objects.exists()
    assert not ToolResult.objects.exists()


def test_a_fork_keeps_its_past_alive(session, workspace):
    with clock.frozen(clock.now() + LATER):
        fork = fork_session(workspace=workspace, session=session, at="2", sid="f1")
        append_events(session=fork, events=[GivenEvent("message", "new", id="n", role="user")])

        assert garbage.forget_old_sessions(days=30) == 0

    assert [event.id for event in get_window(fork).events] == ["0", "1", "2", "n"]


def test_a_fork_without_events_of_its_own_keeps_its_past_too(session, workspace):
    fork = fork_session(workspace=workspace, session=session, at="2", sid="f1")

    with clock.frozen(clock.now() + LATER):
        garbage.forget_old_sessions(days=30)

    assert len(get_window(fork).events) == 3


def test_contents_that_are_carried_stay(session):
    assert garbage.remove_unused_blobs() == 0
    assert Blob.objects.count() == 5


def test_states_of_keys_go_after_a_day_unless_a_lease_lives(session):
    put(session)
    look_up(workspace=session.workspace, call=ToolCall("s1", "t", {"n": 2}), options=LookupOptions(wants_lease=True))

    assert garbage.remove_old_key_states() == 0
    with clock.frozen(clock.now() + timedelta(days=2)):
        assert garbage.remove_old_key_states() == 1
    assert not ToolKey.objects.exists()
