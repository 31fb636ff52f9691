"""Each strategy's verdicts, as a table that a product person can read; and that a new one is one file and one line."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memoryhub.invalidation import strategies
from memoryhub.invalidation.domain.dependency import parse_dependency
from memoryhub.invalidation.domain.selector import Selector, Subject
from memoryhub.invalidation.domain.verdict import Evidence, Snapshot, State, Verdict
from memoryhub.invalidation.strategies import STRATEGIES, judge
from memoryhub.invalidation.strategies.ttl import expiry

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
FILE = {"kind": "file", "path": "/w/a", "size": 3, "mtime_ns": 100, "ino": 7, "dev": 1, "ctime_ns": 100}
YOUNG = {"kind": "file", "path": "/w/a", "size": 3, "sha256": "h1"}
FOLDER = {"kind": "directory", "path": "/w", "sha256": "d1"}
SCHEMA = {"kind": "version", "name": "schema", "value": "1"}
PAGE = {"kind": "url", "url": "https://x/", "etag": "e1"}
TAG = {"kind": "tag", "name": "t"}


def snapshot(*depends_on, lives=600.0, grace=0.0, stored_at=NOON):
    expires_at = None if lives is None else stored_at + timedelta(seconds=lives)
    usable = None if expires_at is None else expires_at + timedelta(seconds=grace)
    return Snapshot(stored_at, expires_at, usable, tuple(map(parse_dependency, depends_on)))


def evidence(*shown, after=1.0, **more):
    parsed = map(parse_dependency, shown)
    return Evidence(NOON + timedelta(seconds=after), {d.identity: d for d in parsed}, **more)


def verdict(strategy, snap, ev):
    found = judge(strategy, snap, ev)
    return found.state.value, found.verified_by


EVERYWHERE = [
    ("fresh for its time", snapshot(), evidence(after=599), ("fresh", "ttl")),
    ("expired after it", snapshot(), evidence(after=600), ("expired", "")),
    ("lives for ever without one", snapshot(lives=None), evidence(after=10**9), ("fresh", "ttl")),
    ("stored by a clock that has stepped back", snapshot(), evidence(after=-10), ("stale", "")),
    ("older than the caller wants", snapshot(), evidence(after=10, max_age=timedelta(seconds=5)), ("expired", "")),
    ("usable while it is computed anew", snapshot(grace=60), evidence(after=650), ("fresh", "ttl")),
    ("and not after that", snapshot(grace=60), evidence(after=661), ("expired", "")),
]


@pytest.mark.parametrize("strategy", ["ttl", "dependency", "event", "manual", "hybrid"])
@pytest.mark.parametrize(("snap", "ev", "expected"), [pytest.param(*row[1:], id=row[0]) for row in EVERYWHERE])
def test_time_rules_every_strategy(strategy, snap, ev, expected):
    assert verdict(strategy, snap, ev) == expected


CASES = [
    ("fingerprint", [FILE], [FILE], ("fresh", "fingerprint")),
    ("fingerprint", [FILE], [], ("unproven", "")),
    ("fingerprint", [], [], ("unproven", "")),
    ("fingerprint", [FILE], [{**FILE, "mtime_ns": 99}], ("stale", "")),
    ("fingerprint", [FILE], [{**FILE, "ino": 8}], ("stale", "")),
    ("fingerprint", [FILE], [{**FILE, "ctime_ns": 101}], ("stale", "")),
    ("fingerprint", [FILE], [{**FILE, "size": 4}], ("stale", "")),
    ("fingerprint", [FILE], [{"kind": "file", "path": "/w/a", "size": 3}], ("unproven", "")),
    ("fingerprint", [FILE], [{"kind": "file", "path": "/w/a", "absent": True}], ("stale", "")),
    (
        "fingerprint",
        [{"kind": "file", "path": "/w/a", "absent": True}],
        [{"kind": "file", "path": "/w/a", "absent": True}],
        ("fresh", "fingerprint"),
    ),
    ("fingerprint", [{"kind": "file", "path": "/w/a", "absent": True}], [FILE], ("stale", "")),
    ("fingerprint", [YOUNG], [FILE], ("unproven", "")),
    ("fingerprint", [YOUNG], [{**FILE, "sha256": "h1", "mtime_ns": 5}], ("fresh", "hash")),
    ("fingerprint", [YOUNG], [{**FILE, "sha256": "h2"}], ("stale", "")),
    ("fingerprint", [YOUNG], [{**FILE, "size": 4}], ("stale", "")),
    ("fingerprint", [FILE, FOLDER], [FILE], ("unproven", "")),
    ("fingerprint", [FILE, FOLDER], [FILE, FOLDER], ("fresh", "fingerprint")),
    ("fingerprint", [FOLDER], [{**FOLDER, "sha256": "d2"}], ("stale", "")),
    ("fingerprint", [FILE], [{**FILE, "path": "/w/./a/"}], ("fresh", "fingerprint")),
    ("ttl", [FILE], [], ("fresh", "ttl")),
    ("ttl", [FILE], [{**FILE, "size": 4}], ("stale", "")),  # shown evidence counts, whatever the strategy
    ("manual", [FILE], [], ("fresh", "ttl")),
    ("dependency", [SCHEMA, PAGE, TAG], [], ("fresh", "ttl")),
    ("dependency", [SCHEMA, PAGE, TAG], [SCHEMA, PAGE], ("fresh", "fingerprint")),
    ("dependency", [SCHEMA], [{**SCHEMA, "value": "2"}], ("stale", "")),
    ("dependency", [PAGE], [{**PAGE, "etag": "e2"}], ("stale", "")),
    ("dependency", [TAG], [TAG], ("fresh", "ttl")),
    ("event", [FILE], [], ("unproven", "")),
    ("event", [FILE], [FILE], ("fresh", "fingerprint")),
    ("event", [FILE, FOLDER], [FILE], ("unproven", "")),
    ("event", [FILE], [{**FILE, "size": 4}], ("stale", "")),
    ("event", [TAG], [], ("fresh", "ttl")),
    ("hybrid", [FILE], [], ("unproven", "")),
    ("hybrid", [FILE, SCHEMA], [FILE], ("fresh", "fingerprint")),
    ("hybrid", [FILE, SCHEMA], [FILE, {**SCHEMA, "value": "2"}], ("stale", "")),
    ("hybrid", [TAG], [], ("fresh", "ttl")),
]


@pytest.mark.parametrize(("strategy", "stored", "shown", "expected"), CASES)
def test_verdicts(strategy, stored, shown, expected):
    assert verdict(strategy, snapshot(*stored), evidence(*shown)) == expected


@pytest.mark.parametrize("strategy", ["event", "hybrid"])
@pytest.mark.parametrize(
    ("root", "since", "expected"),
    [
        ("/w", NOON - timedelta(seconds=1), ("fresh", "event")),
        ("/w", NOON + timedelta(seconds=1), ("unproven", "")),
        ("/other", NOON - timedelta(seconds=1), ("unproven", "")),
        ("/w/ab", NOON - timedelta(seconds=1), ("unproven", "")),
    ],
)
def test_a_watched_folder_vouches_for_what_was_stored_since(strategy, root, since, expected):
    assert verdict(strategy, snapshot(FILE), evidence(watched_since={root: since})) == expected


WATCHED = {"/w": NOON - timedelta(seconds=1)}


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@pytest.mark.parametrize(
    ("stored", "shown", "expected"),
    [
        ([FILE], [], ("unproven", "", "unknown_write")),
        ([FILE], [FILE], ("fresh", "fingerprint", "")),
        ([YOUNG], [YOUNG], ("fresh", "hash", "")),
        ([FILE, FOLDER], [FILE], ("unproven", "", "unknown_write")),
        ([FOLDER], [FOLDER], ("fresh", "hash", "")),
        ([{"kind": "file", "path": "/w/a"}], [FILE], ("unproven", "", "unknown_write")),
    ],
)
def test_after_an_unknown_write_only_a_look_proves_a_file(strategy, stored, shown, expected):
    found = judge(strategy, snapshot(*stored), evidence(*shown, watched_since=WATCHED, unknown_write=True))

    because = "" if strategy == "fingerprint" else expected[2]  # it asks for a look anyway
    assert (found.state.value, found.verified_by, found.because) == (*expected[:2], because)


@pytest.mark.parametrize("strategy", ["ttl", "dependency", "event", "manual", "hybrid"])
def test_an_unknown_write_says_nothing_about_what_is_not_made_of_files(strategy):
    named = snapshot(TAG, SCHEMA)
    rooted = replace(named, is_rooted=True)

    assert judge(strategy, named, evidence(unknown_write=True)).is_fresh
    assert judge(strategy, rooted, evidence(unknown_write=True)).state is State.STALE
    assert judge(strategy, rooted, evidence()).is_fresh


@pytest.mark.parametrize("strategy", list(STRATEGIES))
def test_an_announced_change_beats_every_strategy(strategy):
    subject = Subject("s", "read_file", "p", "k", ())
    snap = Snapshot(NOON, subject=subject)

    found = judge(strategy, snap, evidence(changes=(Selector(tool="read_*"),)))

    assert found.state is State.INVALIDATED


@pytest.mark.parametrize(
    ("selector", "touched"),
    [
        (Selector(tool="read_file"), True),
        (Selector(tool="read"), False),
        (Selector(tool="read_*"), True),
        (Selector(tool="READ_FILE"), False),
        (Selector(session="s"), True),
        (Selector(session="s2"), False),
        (Selector(session="s", tool="other"), False),
        (Selector(key="k"), True),
        (Selector(params_hash="p"), True),
        (Selector(params_hash="q"), False),
        (Selector(tag="t"), True),
        (Selector(tag="T"), False),
        (Selector(event="e9"), True),
        (Selector(path="/w/a"), True),
        (Selector(path="/w/a/"), True),
        (Selector(path="/w"), True),
        (Selector(path="/"), True),
        (Selector(path="/w/ab"), False),
        (Selector(path="/w/a/b"), False),
        (Selector(path="/lib/deep/new"), True),
        (Selector(path="/library"), False),
        (Selector(tool_or_tag="t"), True),
        (Selector(tool_or_tag="read_file"), True),
        (Selector(tool_or_tag="x"), False),
    ],
)
def test_what_a_change_touches(selector, touched):
    folder = {"kind": "directory", "path": "/lib", "sha256": "d"}
    subject = Subject("s", "read_file", "p", "k", tuple(map(parse_dependency, [FILE, TAG, folder])), "e9")

    assert selector.touches(subject) == touched


def test_nothing_selects_nothing():
    with pytest.raises(ValueError, match="at least one"):
        Selector()


def test_jitter_shortens_and_is_the_same_for_the_same_key():
    plain = expiry(NOON, 100)
    spread = {expiry(NOON, 100, jitter=0.2, key=str(i)) for i in range(50)}

    assert plain == NOON + timedelta(seconds=100)
    assert len(spread) > 40
    assert all(plain - timedelta(seconds=20) <= moment <= plain for moment in spread)
    assert expiry(NOON, 100, jitter=0.2, key="a") == expiry(NOON, 100, jitter=0.2, key="a")


def test_every_strategy_opens_with_what_it_is_for():
    for name, strategy in STRATEGIES.items():
        words = __import__(type(strategy).__module__, fromlist=["x"]).__doc__.splitlines()
        assert strategy.name == name
        assert words[0].startswith("When it fits: ")
        assert words[1].startswith("What it costs: ")
        assert words[2].startswith("What it cannot see: ")


class WeekdayStrategy:
    """A new strategy: one class, no base, no registration but its line in the table."""

    name = "weekday"

    def judge(self, snapshot: Snapshot, evidence: Evidence) -> Verdict:
        same = snapshot.stored_at.weekday() == evidence.now.weekday()
        return Verdict(State.FRESH if same else State.STALE, self.name, verified_by="ttl" if same else "")


@pytest.mark.django_db
def test_a_new_strategy_is_one_line_in_the_table(monkeypatch, api):
    """With its line it is accepted as a policy, and judges look-ups over the API."""
    assert api.put("/tool-policies/t", {"cacheable": True, "strategy": "weekday"}).status_code == 422
    monkeypatch.setitem(strategies.STRATEGIES, "weekday", WeekdayStrategy())

    assert api.put("/tool-policies/t", {"cacheable": True, "strategy": "weekday"}).status_code == 200
    api.put("/sessions/s/tool-results", {"tool": "t", "params": {}, "value": 1})
    hit = api.post("/sessions/s/tool-results/lookup", {"tool": "t", "params": {}}).json()
    assert hit["proof"]["strategy"] == "weekday"
