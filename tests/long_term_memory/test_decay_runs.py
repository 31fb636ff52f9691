"""However time is cut into runs of the job, the result is that of one run at the end: states, since when, and strengths."""

import itertools
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoryhub.common import clock
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.services import (
    MemoryChanges,
    MemoryDraft,
    ScopeNames,
    Writer,
    edit_memory,
    remember,
    run_decay,
    save_policy,
)
from memoryhub.long_term_memory.services.recalling import count_accesses
from memoryhub.workspaces.principals import command_principal
from tests.factories import NOON, make_workspace

ANA = ScopeNames(user="ana")
END_DAYS = 400.0
_numbers = itertools.count()
ANY = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
drafts = st.lists(
    st.builds(
        dict,
        importance=st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.8, 1.0]),
        kind=st.sampled_from(["semantic", "episodic"]),
        tags=st.lists(st.sampled_from(["protected", "slow", "other"]), max_size=2, unique=True),
        pinned=st.booleans(),
        access_count=st.integers(0, 5),
    ),
    min_size=1,
    max_size=5,
)
cuts = st.lists(st.floats(0.1, END_DAYS - 1), max_size=4)
policies = st.fixed_dictionaries(
    {"factor": st.sampled_from([0.9, 0.95, 0.99]), "floor": st.sampled_from([0.0, 0.05, 0.15])},
    optional={
        "curve": st.sampled_from(["seed", "half_life"]),
        "forget_after_days": st.none(),
        "by_kind": st.just({"episodic": {"factor": 0.8}}),
        "by_tag": st.just({"slow": {"factor": 0.999, "floor": 0.2}}),
        "protected_tags": st.just(["protected", "other"]),
    },
)


def make_twin(name: str, rows: list[dict[str, Any]], policy: dict[str, Any]) -> Writer:
    workspace = make_workspace(f"{name}-{next(_numbers)}")
    writer = Writer.of(command_principal(workspace, "test"), door="test")
    with clock.frozen(NOON):
        save_policy(writer=writer, changes=policy)
        texts = [MemoryDraft(content=f"note {number}", scope=ANA, **row) for number, row in enumerate(rows)]
        remember(writer=writer, drafts=texts)
    return writer


def run_at(writer: Writer, *days: float) -> None:
    for day in days:
        with clock.frozen(NOON + timedelta(days=day)):
            run_decay(writer=writer)


class Strength(float):
    """Equal to another one as far as a run tells them apart: it leaves rows alone that it would move by a billionth."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Strength) and abs(float(self) - float(other)) <= 2e-9

    def __ne__(self, other: object) -> bool:
        return not self == other


def standing(writer: Writer) -> list[tuple[Any, ...]]:
    rows = Memory.objects.filter(workspace=writer.workspace).order_by("content")
    return [
        (row.content, row.state, row.state_since, row.importance, row.access_count, Strength(row.strength))
        for row in rows
    ]


@pytest.fixture(autouse=True)
def _database(db: Any) -> None:
    """Every test here stores."""


@ANY
@given(rows=drafts, policy=policies, days=cuts)
def test_any_partition_of_time_gives_what_one_run_gives(rows: Any, policy: Any, days: list[float]) -> None:
    often, once = make_twin("often", rows, policy), make_twin("once", rows, policy)

    run_at(often, *sorted(days), END_DAYS, END_DAYS)
    run_at(once, END_DAYS)

    assert standing(often) == standing(once)


@ANY
@given(rows=drafts, policy=policies, days=cuts, back=st.floats(0.0, END_DAYS))
def test_a_clock_that_was_set_back_for_a_while_changes_nothing_in_the_end(
    rows: Any, policy: Any, days: list[float], back: float
) -> None:
    stepping, steady = make_twin("stepping", rows, policy), make_twin("steady", rows, policy)
    last = max(days, default=0.0)

    run_at(stepping, *sorted(days), max(0.0, last - back), END_DAYS)
    run_at(steady, END_DAYS)

    assert standing(stepping) == standing(steady)


@ANY
@given(rows=drafts, first=policies, second=policies, days=cuts, change_day=st.floats(1, 60))
def test_a_change_of_policy_counts_from_its_moment_whatever_ran_before(
    rows: Any, first: Any, second: Any, days: list[float], change_day: float
) -> None:
    kept = {"forget_after_days": None}  # what is in the trash no policy brings back
    often, once = make_twin("often", rows, {**first, **kept}), make_twin("once", rows, {**first, **kept})

    run_at(often, *sorted(day for day in days if day < change_day))
    for writer in (often, once):
        with clock.frozen(NOON + timedelta(days=change_day)):
            save_policy(writer=writer, changes={"by_kind": {}, "by_tag": {}, **second, **kept})
    run_at(often, *sorted(day for day in days if day > change_day), END_DAYS)
    run_at(once, END_DAYS)

    assert standing(often) == standing(once)


@ANY
@given(rows=drafts, policy=policies, days=cuts, read_day=st.floats(0.1, 20))
def test_an_access_moves_the_curve_and_runs_around_it_do_not(
    rows: Any, policy: Any, days: list[float], read_day: float
) -> None:
    often, once = make_twin("often", rows, policy), make_twin("once", rows, policy)

    run_at(often, *sorted(day for day in days if day < read_day))
    for writer in (often, once):
        moment = NOON + timedelta(days=read_day)
        read = Memory.objects.filter(workspace=writer.workspace, archives_at__gt=moment)
        pinned = Memory.objects.filter(workspace=writer.workspace, archives_at=None, state="active")
        with clock.frozen(moment):
            count_accesses(writer.workspace, [*read.select_related("scope"), *pinned.select_related("scope")], moment)
    run_at(often, *sorted(day for day in days if day > read_day), END_DAYS)
    run_at(once, END_DAYS)

    assert standing(often) == standing(once)


@ANY
@given(rows=drafts, policy=policies, days=cuts)
def test_floors_pins_and_protected_tags_hold(rows: Any, policy: Any, days: list[float]) -> None:
    writer = make_twin("held", rows, policy)

    run_at(writer, *sorted(days), END_DAYS)

    protected = set(policy.get("protected_tags", ["protected"]))
    for row, memory in zip(rows, Memory.objects.filter(workspace=writer.workspace).order_by("content"), strict=True):
        assert memory.importance == row["importance"]
        floor = policy["by_tag"]["slow"]["floor"] if "slow" in row["tags"] and "by_tag" in policy else policy["floor"]
        assert memory.state == "forgotten" or memory.strength >= min(floor, memory.importance) - 1e-9
        if row["pinned"] or protected & set(row["tags"]):
            assert (memory.state, memory.strength) == ("active", memory.importance)


def test_a_version_says_once_that_a_memory_was_archived_however_often_the_job_runs() -> None:
    writer = make_twin("versions", [{"importance": 0.5}], {"factor": 0.95})

    run_at(writer, 10, 40, 41, 42, 100)

    versions = MemoryVersion.objects.filter(workspace=writer.workspace).order_by("number")
    assert [(version.number, version.facts["state"]) for version in versions] == [(1, "active"), (2, "archived")]


def test_a_job_leaves_what_was_edited_meanwhile_and_judges_it_by_its_new_curve() -> None:
    writer = make_twin("edited", [{"importance": 0.5}], {"factor": 0.95})
    memory = Memory.objects.get(workspace=writer.workspace)
    with clock.frozen(NOON + timedelta(days=30)):
        edit_memory(writer=writer, memory_id=memory.public_id, changes=MemoryChanges(pinned=True))

    run_at(writer, 40, 300)

    assert Memory.objects.get(pk=memory.pk).state == "active"
