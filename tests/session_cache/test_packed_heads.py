"""The newest events of a branch in one row: the same windows as from its rows, whatever happened since."""

import random
from datetime import timedelta

import pytest
from django.db import connection

from memoryhub.common import clock
from memoryhub.session_cache.models import Branch, PackedHead
from memoryhub.session_cache.queries import stretches
from memoryhub.session_cache.queries.windows import get_window
from memoryhub.session_cache.services import garbage, packs
from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session, rewind
from memoryhub.workspaces.services import ensure_session

pytestmark = pytest.mark.django_db
EVENTS, FORKS = 100_000, 20


@pytest.fixture
def session(workspace):
    return ensure_session(workspace=workspace, sid="s1")


def say(number, text=None, kind="message", role="user"):
    return GivenEvent(kind, f"text {number}" if text is None else text, id=str(number), role=role)


def shown(session, **budget):
    return [event.id for event in get_window(session, **budget).events]


def numbers(first, last):
    return [str(number) for number in range(first, last)]


def test_a_branch_is_packed_every_so_many_events(session):
    append_events(session=session, events=[say(n) for n in range(63)])
    assert not PackedHead.objects.exists()

    append_events(session=session, events=[say(63)])
    pack = PackedHead.objects.get()
    assert (pack.first_seq, pack.last_seq) == (1, 64)
    append_events(session=session, events=[say(n) for n in range(64, 700)])
    pack = PackedHead.objects.get()
    assert (pack.first_seq, pack.last_seq) == (700 - packs.MOST_EVENTS + 1, 700)
    append_events(session=session, events=[say(n) for n in range(700, 720)])

    assert shown(session) == numbers(0, 720)
    assert shown(session, max_events=200) == numbers(520, 720)


def test_a_window_is_read_from_its_pack(session):
    """Were the rows read, the event's own would show."""
    append_events(session=session, events=[say(n) for n in range(192)])
    pack = PackedHead.objects.get()
    data = stretches.raw_bytes(pack.codec, pack.data)
    pack.codec, pack.data = packs.packed(data.replace(b"text 191", b"from the pack"))
    pack.save()

    assert get_window(session, max_events=150).events[-1].content == "from the pack"
    assert get_window(session, max_events=5).events[-1].content == "text 191"


def test_values_of_any_kind_come_back_as_they_were(session):
    contents = [None, "", "ü\u2028\0", 2**70, 0.1, [1, {"b": 1, "a": [None, True]}], {"z": 1, "a": 2}, "x" * 3000]
    events = [GivenEvent("message", content, id=f"c{n}", role="assistant") for n, content in enumerate(contents)]
    append_events(session=session, events=[*events, *(say(n) for n in range(120))])

    window = get_window(session)
    assert PackedHead.objects.get().first_seq == 1
    assert [event.content for event in window.events[: len(contents)]] == contents
    assert list(window.events[6].content) == ["z", "a"], "members keep their order: it is part of a cached prefix"


def test_notes_are_no_part_of_it(session):
    append_events(session=session, events=[say(n, kind="note" if n % 3 == 1 else "message") for n in range(129)])

    assert shown(session) == [str(n) for n in range(129) if n % 3 != 1]


def test_large_contents_end_a_pack_early(session, monkeypatch):
    monkeypatch.setattr(packs, "MOST_BYTES", 10_000)
    append_events(session=session, events=[say(n, text="x" * 900) for n in range(128)])

    pack = PackedHead.objects.get()
    assert pack.last_seq - pack.first_seq + 1 == 11
    assert shown(session) == numbers(0, 128)
    append_events(session=session, events=[say(n, text="y" * 20_000) for n in range(128, 192)])
    assert shown(session) == numbers(0, 192)


def test_a_compaction_cuts_wherever_it_lies(session):
    append_events(session=session, events=[say(n) for n in range(100)])
    append_events(session=session, events=[say(100, kind="compaction"), *(say(n) for n in range(101, 300))])
    assert PackedHead.objects.get().first_seq == 101
    assert shown(session) == numbers(100, 300)

    append_events(session=session, events=[say(300, kind="compaction")])
    assert shown(session) == ["300"]
    rewind(session=session, to="250")
    assert shown(session) == numbers(100, 251)
    rewind(session=session, to="50")
    assert shown(session) == numbers(0, 51)


def test_a_fork_reads_its_past_from_its_parents_pack(session, workspace):
    append_events(session=session, events=[say(n) for n in range(400)])
    fork = fork_session(workspace=workspace, session=session, at="300", sid="f")
    append_events(session=fork, events=[say(n) for n in range(1000, 1130)])
    append_events(session=session, events=[say(n) for n in range(400, 900)])

    assert shown(fork) == [*numbers(0, 301), *numbers(1000, 1130)]
    assert shown(fork, max_events=200) == [*numbers(231, 301), *numbers(1000, 1130)]
    assert shown(session) == numbers(0, 900)


def test_it_goes_with_its_branch(session):
    append_events(session=session, events=[say(n) for n in range(200)])
    assert PackedHead.objects.exists()

    with clock.frozen(clock.now() + timedelta(days=40)):
        assert garbage.forget_old_sessions(days=30) == 1

    assert not Branch.objects.exists()
    assert not PackedHead.objects.exists()


@pytest.mark.slow
def test_a_hundred_thousand_events_with_twenty_forks(session, workspace):
    """Random windows of a long session, and of forks from anywhere in it, beside lists that were kept by hand."""
    dice = random.Random(11)
    ways, said, kinds = {"s1": []}, 0, {}
    sessions = {"s1": session}

    def grow(sid, count):
        nonlocal said
        batch = []
        for _ in range(count):
            kind = "compaction" if dice.random() < 0.0004 else "note" if dice.random() < 0.02 else "message"
            kinds[str(said)] = kind
            batch.append(say(said, kind=kind))
            if kind != "note":
                ways[sid].append(str(said))
            said += 1
        append_events(session=sessions[sid], events=batch)

    for number in range(EVENTS // 1000):
        grow("s1", 1000)
        if number % 10 == 1 and connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")  # autovacuum sees nothing of a transaction that is not committed
        if number % (EVENTS // 1000 // FORKS) == 0:
            at = dice.choice(ways["s1"])
            sid = f"fork-{number}"
            sessions[sid] = fork_session(workspace=workspace, session=session, at=at, sid=sid)
            ways[sid] = ways["s1"][: ways["s1"].index(at) + 1]
            grow(sid, dice.randint(50, 200))
    assert len(sessions) == FORKS + 1

    for _ in range(150):
        sid = dice.choice(list(sessions))
        place = dice.randrange(len(ways[sid])) if dice.random() < 0.8 else len(ways[sid]) - 1
        way = ways[sid][: place + 1]
        cut = max((i for i, event in enumerate(way) if kinds[event] == "compaction"), default=0)
        most = dice.choice([None, 1, 50, 150, 500])
        expected = way[cut:] if most is None else way[cut:][-most:]
        assert shown(sessions[sid], at=way[-1], max_events=most) == expected, (sid, way[-1], most)
