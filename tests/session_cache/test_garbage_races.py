"""The collector meets writers half-way: nothing that somebody is about to use, or has just used, is taken away."""

import hashlib
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction

from memoryhub.common import clock
from memoryhub.session_cache.models import Blob, SessionEvent
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.session_cache.services import garbage
from memoryhub.session_cache.services.blobs import ensure_blobs
from memoryhub.session_cache.services.events import GivenEvent, append_events, content_bytes, fork_session
from memoryhub.workspaces.services import ensure_session

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.only_on("postgresql"),  # SQLite has one writer at a time
]


@pytest.fixture
def session(workspace):
    return ensure_session(workspace=workspace, sid="s1")


@pytest.fixture
def left_behind(session, workspace):
    """Contents that no event carries any more, and what they were."""
    texts = [f"a text that was said before, number {number}" for number in range(8)]
    append_events(session=session, events=[GivenEvent("message", text, role="user") for text in texts])
    SessionEvent.objects.all()._raw_delete(using="default")
    return texts


class Beside:
    """Runs something on a thread, and so on a connection, of its own."""

    def __init__(self, work):
        self.outcome = None
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work):
        try:
            self.outcome = work()
        except BaseException as error:
            self.outcome = error
        finally:
            connection.close()

    def is_waiting(self):
        self._thread.join(1.0)
        return self._thread.is_alive()

    def result(self):
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.outcome


@pytest.mark.parametrize("count", [1, 8])
def test_a_content_that_an_append_has_just_found_is_not_collected(session, workspace, left_behind, count):
    texts = left_behind[:count]
    found, go_on = threading.Event(), threading.Event()

    def append():
        with transaction.atomic():
            contents = {hashlib.sha256(data).digest(): data for data in map(content_bytes, texts)}
            ensure_blobs(workspace=workspace, contents=contents)
            found.set()
            go_on.wait(30)
            return append_events(session=session, events=[GivenEvent("message", text, role="user") for text in texts])

    writer = Beside(append)
    assert found.wait(30)
    collector = Beside(garbage.remove_unused_blobs)

    assert collector.result() == 8 - count
    go_on.set()
    assert len(writer.result().items) == count
    assert [event.content for event in get_window(session).events] == texts


@pytest.mark.parametrize("count", [1, 8])
def test_an_append_waits_for_a_collector_and_stores_the_content_anew(session, left_behind, count):
    texts = left_behind[:count]
    with transaction.atomic():
        assert garbage.remove_unused_blobs() == 8
        writer = Beside(
            lambda: append_events(session=session, events=[GivenEvent("message", text, role="user") for text in texts])
        )
        assert writer.is_waiting()

    assert len(writer.result().items) == count
    assert [event.content for event in get_window(session).events] == texts
    assert Blob.objects.count() == count


def test_a_content_that_was_used_between_the_collectors_two_looks_stays(session, left_behind, monkeypatch):
    """The first look is a snapshot: an append that commits after it, and before the lock, is seen by the second."""
    real = garbage._unheld

    def late(blobs):
        chosen = list(blobs.values_list("pk", flat=True))
        Beside(
            lambda: append_events(session=session, events=[GivenEvent("message", left_behind[3], role="user")])
        ).result()
        return real(Blob.objects.filter(pk__in=chosen).order_by("pk"))

    monkeypatch.setattr(garbage, "_unheld", late)

    assert garbage.remove_unused_blobs() == 7
    assert [event.content for event in get_window(session).events] == [left_behind[3]]


def test_appends_and_collections_by_turns_never_fail(workspace):
    """The race as it happens: sessions that say the same things, while others are let go of and collected."""
    texts = [f"something that everybody says, {number}" for number in range(6)]
    end = clock.monotonic() + 3
    failures = []

    def talk(name):
        rounds = 0
        while clock.monotonic() < end:
            rounds += 1
            session = ensure_session(workspace=workspace, sid=f"{name}-{rounds}")
            try:
                append_events(session=session, events=[GivenEvent("message", text, role="user") for text in texts])
            except Exception as error:
                failures.append(repr(error))
            SessionEvent.objects.filter(session=session)._raw_delete(using="default")
        return rounds

    def collect():
        removed = 0
        while clock.monotonic() < end:
            try:
                removed += garbage.remove_unused_blobs()
            except Exception as error:
                failures.append(repr(error))
        return removed

    talkers = [Beside(lambda name=name: talk(name)) for name in ("a", "b")]
    collector = Beside(collect)

    assert all(talker.result() > 5 for talker in talkers)
    assert collector.result() > 0
    assert failures == []


def test_a_session_that_wakes_up_is_not_let_go_of(session, workspace):
    """Idle when it was chosen, written to before its turn came: the second look, under the writers' lock, decides."""
    append_events(session=session, events=[GivenEvent("message", "old", role="user")])
    with clock.frozen(clock.now() + timedelta(days=40)):
        with transaction.atomic():
            append_events(session=session, events=[GivenEvent("message", "new", role="user")])
            collector = Beside(lambda: garbage.forget_old_sessions(days=30))
            assert collector.is_waiting()

        assert collector.result() == 0
    assert [event.content for event in get_window(session).events] == ["old", "new"]


def test_a_fork_and_the_collector_never_take_each_others_past(session, workspace):
    append_events(session=session, events=[GivenEvent("message", "old", role="user")])
    with clock.frozen(clock.now() + timedelta(days=40)):
        with transaction.atomic():
            fork_session(workspace=workspace, session=session, at=None, sid="fork")
            collector = Beside(lambda: garbage.forget_old_sessions(days=30))
            assert collector.is_waiting()
        assert collector.result() == 0

    assert len(get_window(ensure_session(workspace=workspace, sid="fork")).events) == 1
