"""Joining views of one response: any order, any number of times."""

import json
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memoryhub.prompt_cache.domain.sightings import Joined, Place, Sighting, from_json, to_json
from memoryhub.prompt_cache.domain.usage import Stated

TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)


def sighting(**changes: Any) -> Sighting:
    values: dict[str, Any] = {
        "key": "msg_1",
        "part": 0,
        "kind": "message",
        "source": "transcript",
        "model": "claude-opus-5-5",
        "stated": Stated(input=3, output=1),
        "occurred_at": TEN,
        "credit": "2026-11-10|/a.jsonl",
    }
    return Sighting(**{**values, **changes})


def join_all(*sightings: Sighting) -> Joined:
    return reduce(Joined.joined, map(Joined.of, sightings))


def test_placeholder_output_of_early_lines_gives_way_to_the_final_number() -> None:
    early, late = sighting(stated=Stated(3, 1)), sighting(stated=Stated(3, 5000))

    assert join_all(early, early, late).resolved().stated.output == 5000
    assert join_all(late, early).resolved().stated.output == 5000


def test_a_cumulative_delta_without_a_split_does_not_double_the_write() -> None:
    start = sighting(stated=Stated(3, 1, cache_write=10_000, cache_write_5m=0, cache_write_1h=10_000))
    delta = sighting(stated=Stated(3, 500, cache_write=10_000))

    tokens = join_all(start, delta).resolved().stated.tokens()

    assert (tokens.cache_write_5m, tokens.cache_write_1h, tokens.output) == (0, 10_000, 500)


def test_a_main_chain_line_replaces_a_side_chain_replay() -> None:
    replay = sighting(sidechain=True, stated=Stated(900, 900), place=Place(session="side"), credit="2020|/first.jsonl")
    main = sighting(stated=Stated(3, 50), place=Place(session="main"))

    for joined in (join_all(replay, main), join_all(main, replay)):
        assert joined.resolved() == main


def test_a_copied_line_is_credited_to_the_file_that_began_first_then_to_the_path() -> None:
    original = sighting(place=Place(session="s1"), credit="2026-11-10|/b.jsonl")
    later_fork = sighting(place=Place(session="s2"), credit="2026-11-11|/a.jsonl")
    same_start = sighting(place=Place(session="s3"), credit="2026-11-10|/c.jsonl")

    assert join_all(later_fork, same_start, original).resolved().place.session == "s1"


def test_what_was_declared_wins_and_the_transcript_fills_the_gaps() -> None:
    told = sighting(
        source="rest", credit="", place=Place(session="s1", user="ana"), started_at=TEN, stated=Stated(3, 40)
    )
    found = sighting(
        place=Place(session="file", project="/w/web"), stated=Stated(3, 50), occurred_at=TEN + timedelta(hours=2)
    )

    seen = join_all(found, told).resolved()

    assert seen.place == Place(session="s1", user="ana", project="/w/web")
    assert (seen.stated.output, seen.occurred_at, seen.source) == (50, TEN, "rest")


def test_a_declared_time_that_nobody_stated_gives_way_to_the_transcripts() -> None:
    told = sighting(source="rest", credit="", occurred_at=TEN + timedelta(days=9))

    assert join_all(told, sighting()).resolved().occurred_at == TEN


def test_diagnostics_that_came_late_are_kept() -> None:
    running = sighting(diagnostics={"cache_miss_reason": None})
    known = sighting(diagnostics={"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 9}})

    assert join_all(known, running, sighting()).resolved().diagnostics == known.diagnostics


numbers = st.none() | st.integers(-2, 5)
times = st.integers(0, 3).map(lambda hours: TEN + timedelta(hours=hours))
words = st.sampled_from(["", "a", "b"])
views = st.builds(
    sighting,
    stated=st.builds(Stated, *[numbers] * 9),
    source=st.sampled_from(["transcript", "rest", "proxy"]),
    model=st.sampled_from(["m1", "m2"]),
    occurred_at=times,
    started_at=st.none() | times,
    ended_at=st.none() | times,
    service_tier=st.sampled_from(["", "standard", "batch", "new"]),
    speed=st.sampled_from(["", "standard", "fast"]),
    inference_geo=st.sampled_from(["", "us", "global"]),
    request_id=words,
    place=st.builds(Place, words, words, words, words, words),
    diagnostics=st.sampled_from([None, {"cache_miss_reason": None}, {"cache_miss_reason": {"type": "model_changed"}}]),
).map(lambda s: s if s.is_transcript else Sighting(**{**{n: getattr(s, n) for n in s.__slots__}, "credit": ""}))
transcript_views = st.builds(
    lambda s, sidechain, credit: (
        Sighting(**{**{n: getattr(s, n) for n in s.__slots__}, "sidechain": sidechain, "credit": credit})
        if s.is_transcript
        else s
    ),
    views,
    st.booleans(),
    st.sampled_from(["1|/a", "1|/b", "2|/a"]),
)


@given(st.lists(transcript_views, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_order_grouping_and_repeats_do_not_matter(sightings: list[Sighting], random: Any) -> None:
    expected = join_all(*sightings)
    shuffled = [*sightings, *sightings]
    random.shuffle(shuffled)
    middle = random.randrange(1, len(shuffled))

    grouped = join_all(*shuffled[:middle]).joined(join_all(*shuffled[middle:]))

    assert grouped == expected
    assert grouped.resolved() == expected.resolved()


@given(transcript_views)
def test_a_block_survives_storing(view: Sighting) -> None:
    assert from_json(json.loads(json.dumps(to_json(view)))) == view
