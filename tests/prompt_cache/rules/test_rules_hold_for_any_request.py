"""Properties: what holds for every request, not only for the ones in the tables."""

import copy
from dataclasses import replace
from itertools import accumulate, combinations, product
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memoryhub.prompt_cache.domain.doctor import diagnose
from memoryhub.prompt_cache.domain.planner import plan
from memoryhub.prompt_cache.domain.pricing import Tokens
from memoryhub.prompt_cache.domain.request_body import read_prompt
from memoryhub.prompt_cache.domain.simulator import (
    PLANS,
    Cache,
    Shape,
    bill,
    calibration_error,
    keep_alive,
    replay,
    simulate,
)
from memoryhub.prompt_cache.domain.validator import validate
from tests.prompt_cache.rules.cases import Body, make_exchange
from tests.prompt_cache.rules.strategies import WORDS, bodies, markable, marked_bodies, messages
from tests.prompt_cache.rules.test_planner import without_markers
from tests.prompt_cache.rules.test_simulator import priced, shape


@given(marked_bodies(), messages(), marked_bodies())
def test_appending_is_always_healthy(body: Body, more: list[Body], other: Body) -> None:
    later = without_markers(body)
    later["messages"] += more
    later["max_tokens"] = other["max_tokens"]
    for block in markable(later)[-1:]:
        block["cache_control"] = {"type": "ephemeral"}

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(later, read=9_000, at=5))

    assert (answer.verdict, answer.cause, answer.also) == ("hit", "none", ())


def places(body: Body) -> list[tuple[list[Any], str, str]]:
    """Return (path of keys, expected cause, JSON path) of every text that may be changed."""
    found: list[tuple[list[Any], str, str]] = [
        (["tools", n, "description"], "tools_changed", f"tools[{n}].description") for n in range(len(body["tools"]))
    ]
    if isinstance(body["system"], str):
        found.append((["system"], "system_changed", "system"))
    else:
        found += [(["system", n, "text"], "system_changed", f"system[{n}].text") for n in range(len(body["system"]))]
    for n, message in enumerate(body["messages"]):
        path: list[Any] = ["messages", n, "content"]
        if isinstance(message["content"], str):
            found.append((path, "messages_changed", f"messages[{n}].content"))
            continue
        for m, block in enumerate(message["content"]):
            key = "text" if block["type"] == "text" else "name" if block["type"] == "tool_use" else "content"
            if key == "content" and isinstance(block["content"], list):
                found.append(
                    (
                        [*path, m, "content", 0, "text"],
                        "messages_changed",
                        f"messages[{n}].content[{m}].content[0].text",
                    )
                )
            else:
                found.append(([*path, m, key], "messages_changed", f"messages[{n}].content[{m}].{key}"))
    return found


def texts(value: Any) -> set[str]:
    """Return every text of a message or request that may be changed, wherever it stands."""
    if isinstance(value, dict):
        return set().union(
            *(
                texts(value[key])
                for key in ("content", "text", "system", "messages", "tools", "description", "name")
                if key in value
            )
        )
    if isinstance(value, list):
        return set().union(*map(texts, value))
    return {value} if isinstance(value, str) else set()


@given(bodies(), messages(), st.data())
def test_any_single_change_is_named_at_its_path(body: Body, more: list[Body], data: st.DataObject) -> None:
    keys, cause, path = data.draw(st.sampled_from(places(body)))
    changed = copy.deepcopy(body)
    target: Any = changed
    for key in keys[:-1]:
        target = target[key]
    before, after = target[keys[-1]], data.draw(WORDS)
    # A text that stands elsewhere too could as well have been inserted, removed or moved: then there are two true answers.
    assume(after not in texts(body) and not texts(more) & texts(body))
    target[keys[-1]] = after
    changed["messages"] += more

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_500, at=5))

    assert (answer.verdict, answer.cause, answer.path) == ("miss", cause, path)
    assert answer.offset is not None
    assert before[: answer.offset] == after[: answer.offset]
    assert before[answer.offset : answer.offset + 1] != after[answer.offset : answer.offset + 1]


@given(bodies(), st.data())
def test_any_removed_tool_is_named(body: Body, data: st.DataObject) -> None:
    assume(body["tools"])
    index = data.draw(st.integers(0, len(body["tools"]) - 1))
    changed = copy.deepcopy(body)
    changed["tools"].pop(index)

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_000, at=5))

    assert (answer.cause, answer.detail, answer.path) == ("tools_changed", "removed", f"tools[{index}]")


@given(bodies(), st.data())
def test_any_other_order_of_tools_is_named(body: Body, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(body["tools"]))))
    assume(list(order) != sorted(order))
    changed = copy.deepcopy(body)
    changed["tools"] = [body["tools"][index] for index in order]
    first = next(index for index, old in enumerate(order) if index != old)

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_000, at=5))

    assert (answer.cause, answer.detail, answer.path) == ("tools_changed", "reordered", f"tools[{first}]")


@given(marked_bodies())
def test_no_legal_request_has_errors(body: Body) -> None:
    assert [finding for finding in validate(body) if finding.level == "error"] == []


@given(marked_bodies())
def test_a_plan_stays_legal_and_changes_only_markers(body: Body) -> None:
    body["tools"] = [tool | {"description": tool["description"] + " word" * 4_000} for tool in body["tools"]]

    result = plan(body)

    assert [finding for finding in validate(result.body) if finding.level == "error"] == []
    stripped, original = without_markers(result.body), without_markers(body)
    if isinstance(original["system"], str) and not isinstance(stripped["system"], str):
        stripped["system"] = stripped["system"][0]["text"]
    assert stripped == original
    assert len(read_prompt(result.body).effective_markers()) <= 4


# --- Simulator -------------------------------------------------------------------------------------------------------

TTLS = st.sampled_from(["5m", "1h"])


@st.composite
def sessions(draw: Any, most: int = 12, turns: int = 8) -> list[Shape]:
    """A growing conversation with pauses, sometimes rewritten, marked legally at random."""
    at, shapes, sizes, version = 0.0, [], [draw(st.integers(1, 9_000)) for _ in range(draw(st.integers(1, 3)))], 0
    for _ in range(draw(st.integers(1, turns))):
        at += draw(st.sampled_from([0.5, 5, 60, 299, 301, 1_500, 3_601]))
        if draw(st.integers(0, 5)) == 0:
            version += 1
        else:
            sizes = sizes + [draw(st.integers(1, 3_000)) for _ in range(draw(st.integers(1, most)))]
        ends = sorted(draw(st.lists(st.integers(0, len(sizes) - 1), max_size=4, unique=True)))
        hours = draw(st.integers(0, len(ends)))
        markers = [(end, "1h" if order < hours else "5m") for order, end in enumerate(ends)]
        shapes.append(
            shape(
                sizes, at=at, markers=markers, prefix=f"v{version}", minimum=512, tools=0, system=min(1, len(sizes) - 1)
            )
        )
    return shapes


@given(sessions())
def test_the_simulator_reproduces_what_it_generated(shapes: list[Shape]) -> None:
    cache: Cache = {}
    billed = [replace(item, billed=bill(item, item.markers, cache)) for item in shapes]

    assert calibration_error(billed) in (0, None)


@given(sessions())
def test_counters_are_disjoint_and_add_up_under_every_plan(shapes: list[Shape]) -> None:
    for result in simulate(shapes, PLANS, priced).replays:
        for request, counters in zip(shapes, result.bills, strict=True):
            assert counters.prompt == request.total_tokens
            assert min(counters.input, counters.cache_write_5m, counters.cache_write_1h, counters.cache_read) >= 0


def cheapest_by_search(shapes: list[Shape]) -> int:
    """Return the cheapest of every legal marking of every request, with and without pings in each pause."""
    choices = []
    for request in shapes:
        ends = range(len(request.can_carry))
        marked = [
            list(zip(chosen, ttls, strict=True))
            for size in range(3)
            for chosen in combinations(ends, size)
            for ttls in product(("1h", "5m"), repeat=size)
        ]
        choices.append([option for option in marked if "5m1h" not in "".join(ttl for _, ttl in option)])
    best: int | None = None
    for options in product(*choices):
        for pinged in (False, True):
            cache: Cache = {}
            cost = 0
            for index, (request, markers) in enumerate(zip(shapes, options, strict=True)):
                if pinged and index:
                    cost += keep_alive(shapes[index - 1], request, cache, priced)[1] or 0
                counters = bill(request, markers, cache)
                cost += priced(request, counters.prompt).price(counters)
            best = cost if best is None else min(best, cost)
    assert best is not None
    return best


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.sampled_from([30, 299, 301, 1_500, 4_000]), min_size=1, max_size=2),
    st.lists(st.integers(400, 20_000), min_size=4, max_size=4),
)
def test_no_plan_is_cheaper_than_an_exhaustive_search(gaps: list[int], sizes: list[int]) -> None:
    starts = list(accumulate([0, *gaps]))
    shapes = [
        shape(sizes[: 2 + turn], at=at, markers=[(0, "1h"), (1 + turn, "5m")], minimum=512, tools=0, system=1)
        for turn, at in enumerate(starts)
    ]
    best = cheapest_by_search(shapes)

    for name in PLANS:
        assert (replay(shapes, name, priced).cost_pico or 0) >= best


def test_the_bill_of_the_whole_session_is_what_its_parts_cost() -> None:
    shapes = [shape([9_000], at=0, markers=[(0, "5m")]), shape([9_000, 100], at=10, markers=[(1, "5m")])]
    expected = [Tokens(cache_write_5m=9_000), Tokens(cache_write_5m=100, cache_read=9_000)]

    result = replay(shapes, "actual", priced)

    assert list(result.bills) == expected
    assert result.cost_pico == sum(
        priced(request, 0).price(item) for request, item in zip(shapes, expected, strict=True)
    )
