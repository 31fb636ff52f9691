"""Properties: what holds for every request, not only for the ones in the tables."""

import copy
from dataclasses import replace
from itertools import accumulate, combinations, product
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
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
from tests.prompt_cache.rules.strategies import (
    WORDS,
    bodies,
    has_pictures,
    keeps_thinking,
    markable,
    marked_bodies,
    messages,
)
from tests.prompt_cache.rules.test_planner import without_markers
from tests.prompt_cache.rules.test_simulator import priced, shape

# A request of every kind of block takes its time to make on a busy machine; that says nothing about the rules.
unhurried = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@unhurried
@given(marked_bodies(), st.data())
def test_appending_is_always_healthy(body: Body, data: st.DataObject) -> None:
    """Also with other markers, another length of the answer, and what the cache never sees."""
    model, pictures = body["model"], has_pictures(body["messages"])
    later = without_markers(body)
    later["messages"] += data.draw(messages(pictures=pictures, thinks=keeps_thinking(model)))
    later["max_tokens"] = data.draw(st.integers(1, 9999))
    later |= data.draw(st.sampled_from([{}, {"stream": True}, {"temperature": 0.3}, {"metadata": {"user_id": "u"}}]))
    later["tools"] = [*later["tools"], {"name": "late", "input_schema": {}, "defer_loading": True}]
    for block in markable(later)[-1:]:
        if block.get("defer_loading") is not True:
            block["cache_control"] = {"type": "ephemeral"}

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(later, read=9_000, at=5))

    assert (answer.verdict, answer.cause, answer.also) == ("hit", "none", ())


# Where a kind of block keeps a text: (keys of it, the same as the answer names it).
TEXT_OF = {
    "text": ["text"],
    "tool_use": ["name"],
    "server_tool_use": ["name"],
    "mcp_tool_use": ["name"],
    "image": ["source", "data"],
    "document": ["source", "data"],
    "search_result": ["title"],
    "thinking": ["thinking"],
    "redacted_thinking": ["data"],
    "web_search_tool_result": ["tool_use_id"],
}


def text_of(block: Body) -> list[Any]:
    """Return the keys of a text in a block; of a result with blocks the first one's."""
    if block["type"] in TEXT_OF:
        return list(TEXT_OF[block["type"]])
    if isinstance(block["content"], str):
        return ["content"]
    return ["content", 0, *text_of(block["content"][0])]


def json_path(keys: list[Any]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def places(body: Body) -> list[tuple[list[Any], str, str]]:
    """Return (path of keys, expected cause, JSON path) of a text in every tool, system block and message."""
    tools = [n for n, tool in enumerate(body["tools"]) if "description" in tool]
    found: list[tuple[list[Any], str]] = [(["tools", n, "description"], "tools_changed") for n in tools]
    system = body.get("system")
    if isinstance(system, str):
        found.append((["system"], "system_changed"))
    found += [(["system", n, "text"], "system_changed") for n in range(len(system) if isinstance(system, list) else 0)]
    for n, message in enumerate(body["messages"]):
        path: list[Any] = ["messages", n, "content"]
        if isinstance(message["content"], str):
            found.append((path, "messages_changed"))
            continue
        found += [([*path, m, *text_of(block)], "messages_changed") for m, block in enumerate(message["content"])]
    return [(keys, cause, json_path(keys)) for keys, cause in found]


def plant(body: Body, keys: list[Any], text: str) -> None:
    """Put a text at a place of the request."""
    target: Any = body
    for key in keys[:-1]:
        target = target[key]
    target[keys[-1]] = text


@unhurried
@given(bodies(), st.data())
def test_any_single_change_is_named_at_its_path(body: Body, data: st.DataObject) -> None:
    more = data.draw(messages(pictures=has_pictures(body["messages"]), thinks=keeps_thinking(body["model"])))
    assume(places(body))
    keys, cause, path = data.draw(st.sampled_from(places(body)))
    # A text that stands elsewhere too could as well have been inserted, removed or moved: then there were two true answers.
    before, after = f"{data.draw(WORDS)} was here", f"{data.draw(WORDS)} is here"
    plant(body, keys, before)
    changed = copy.deepcopy(body)
    plant(changed, keys, after)
    changed["messages"] += more

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_500, at=5))

    assert (answer.verdict, answer.cause, answer.path) == ("miss", cause, path)
    assert answer.offset is not None
    assert before[: answer.offset] == after[: answer.offset]
    assert before[answer.offset : answer.offset + 1] != after[answer.offset : answer.offset + 1]


@unhurried
@given(bodies(), st.data())
def test_any_removed_tool_is_named(body: Body, data: st.DataObject) -> None:
    assume(body["tools"])
    index = data.draw(st.integers(0, len(body["tools"]) - 1))
    changed = copy.deepcopy(body)
    changed["tools"].pop(index)

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_000, at=5))

    assert (answer.cause, answer.detail, answer.path) == ("tools_changed", "removed", f"tools[{index}]")


@unhurried
@given(bodies(), st.data())
def test_any_other_order_of_tools_is_named(body: Body, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(body["tools"]))))
    assume(list(order) != sorted(order))
    changed = copy.deepcopy(body)
    changed["tools"] = [body["tools"][index] for index in order]
    first = next(index for index, old in enumerate(order) if index != old)

    answer = diagnose(make_exchange(body, write=9_000), make_exchange(changed, write=9_000, at=5))

    assert (answer.cause, answer.detail, answer.path) == ("tools_changed", "reordered", f"tools[{first}]")


@unhurried
@given(marked_bodies())
def test_no_legal_request_has_errors(body: Body) -> None:
    assert [finding for finding in validate(body) if finding.level == "error"] == []


@unhurried
@given(marked_bodies())
def test_a_plan_stays_legal_and_changes_only_markers(body: Body) -> None:
    body["tools"] = [
        tool | ({"description": tool["description"] + " word" * 4_000} if "description" in tool else {})
        for tool in body["tools"]
    ]

    result = plan(body)

    assert [finding for finding in validate(result.body) if finding.level == "error"] == []
    stripped, original = without_markers(result.body), without_markers(body)
    if isinstance(original.get("system"), str) and not isinstance(stripped["system"], str):
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
