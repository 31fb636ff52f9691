"""Who goes first when there is no room, in the rule and in the tables."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryhub.session_cache.domain.eviction import Facts, fits, gdsf, lfu, lru, moving_average
from memoryhub.session_cache.models import ToolResult, ToolSpace
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.policies import PolicyChoice, set_tool_policy
from memoryhub.session_cache.services.sessions import describe_session
from memoryhub.session_cache.services.store import ToolValue, store_tool_result


def facts(hits=0, cost_ms=100.0, size_bytes=1000, used_at=0.0):
    return Facts(hits, cost_ms, size_bytes, used_at)


def test_worth_is_hits_times_root_of_cost_over_size():
    assert gdsf(facts(hits=1), 0) > gdsf(facts(), 0)
    assert gdsf(facts(cost_ms=400), 0) == pytest.approx(2 * gdsf(facts(cost_ms=100), 0))
    assert gdsf(facts(size_bytes=100), 0) > gdsf(facts(size_bytes=1000), 0)
    assert gdsf(facts(cost_ms=0), 0) > 0


@pytest.mark.parametrize("rule", [gdsf, lfu])
def test_an_old_favourite_sinks_below_newcomers(rule):
    """The floor rises with each eviction, so an entry that is not hit any more is overtaken."""
    favourite = rule(facts(hits=100), 0)
    floor, newcomers = 0.0, 0
    while rule(facts(), floor) < favourite:
        floor = rule(facts(), floor)
        newcomers += 1

    assert newcomers <= 101


def test_lru_is_the_time_of_the_last_use():
    assert lru(facts(used_at=5), 100) == 5


def test_a_fifth_of_the_capacity_is_the_limit():
    assert fits(200, 1000)
    assert not fits(201, 1000)


def test_a_tools_cost_follows_what_it_does_lately():
    average = None
    for sample in [100] * 20 + [10] * 60:
        average = moving_average(average, sample)

    assert 10 <= average < 12


@pytest.fixture
def session(owner):
    usage.forget_all()
    session = describe_session(principal=owner, sid="s", tool_capacity_bytes=1024)
    choice = PolicyChoice(cacheable=True)
    set_tool_policy(workspace=owner.workspace, tool="t", choice=choice, actor=owner.actor)
    session.principal = owner
    yield session
    usage.forget_all()


def put(session, number, size=98, cost_ms=10.0):
    call = ToolCall("s", "t", {"n": number})
    return store_tool_result(session=session, call=call, given=ToolValue("x" * size, cost_ms=cost_ms))


def look(session, number):
    return look_up(workspace=session.workspace, call=ToolCall("s", "t", {"n": number}), options=LookupOptions())


def sums(session):
    space = ToolSpace.objects.get(session=session)
    sizes = list(ToolResult.objects.filter(session=session).values_list("size_bytes", flat=True))
    assert (space.used_bytes, space.entry_count) == (sum(sizes), len(sizes))
    assert space.used_bytes <= 1024
    return space


def test_a_full_space_makes_room_and_the_sum_stays_right(session):
    for number in range(25):
        assert put(session, number).stored
        sums(session)

    assert sums(session).entry_count == 10
    assert sums(session).evicted_count == 15
    assert look(session, 0).reason == "evicted"
    assert look(session, 24).state == "hit"


def test_making_room_costs_the_same_however_much_is_stored(session):
    """Victims are walked along an index: no scan, and as many statements in a large space as in a small one."""
    counts = []
    for entries in (10, 1000):
        describe_session(principal=session.principal, sid="s", tool_capacity_bytes=100 * entries + 24)
        for number in range(entries):
            put(session, number)
        with CaptureQueriesContext(connection) as captured:
            put(session, 10_000 + entries)
        counts.append(len(captured.captured_queries))
    assert counts[0] == counts[1]
    assert sum_of_evicted(session) >= 2

    with connection.cursor() as cursor:
        sql, params = (
            ToolResult.objects.filter(space_id=1).first_to_evict().values_list("pk")[:100].query.sql_with_params()
        )
        cursor.execute("SET enable_seqscan = off" if connection.vendor == "postgresql" else "SELECT 1")
        cursor.execute(("EXPLAIN " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN ") + sql, params)
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "tool_result_eviction" in plan, plan
    assert "TEMP B-TREE" not in plan
    assert "Sort" not in plan


def sum_of_evicted(session):
    return ToolSpace.objects.get(session=session).evicted_count


def test_what_is_hit_and_dear_stays(session):
    for number in range(10):
        put(session, number, cost_ms=10_000.0 if number == 3 else 10.0)
    look(session, 5)
    look(session, 5)
    usage.flush()

    for number in range(10, 17):
        put(session, number)

    assert look(session, 3).state == "hit"
    assert look(session, 5).state == "hit"
    assert look(session, 0).state == "miss"


def test_a_new_hot_set_replaces_an_old_one(session):
    """The fault of counting without ageing: what was hot for ever keeps everything new out."""
    for number in range(10):
        put(session, number)
        for _ in range(50):
            look(session, number)
    usage.flush()

    for _ in range(15):
        for number in range(100, 105):
            if look(session, number).state == "miss":
                put(session, number)
            usage.flush()

    assert [look(session, number).state for number in range(100, 105)] == ["hit"] * 5


@pytest.mark.parametrize("rule", ["lru", "lfu", "gdsf"])
def test_each_rule_can_be_chosen(session, settings, rule):
    settings.TOOL_CACHE_EVICTION = rule

    for number in range(12):
        put(session, number)
        look(session, 0)
        usage.flush()

    assert sums(session).entry_count == 10
    assert look(session, 0).state == "hit"
