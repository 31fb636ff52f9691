"""The limit on writes holds over processes, and costs a write nothing but now and then."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryhub.common import clock
from memoryhub.long_term_memory.queries.guards import GuardSettings
from memoryhub.long_term_memory.services import TooManyWrites, Writer
from memoryhub.long_term_memory.services.write_limit import forget_all, limit_writes
from memoryhub.workspaces.models import Tally
from memoryhub.workspaces.principals import Principal
from tests.factories import NOON


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(Principal(owner.workspace, "key", "lookup", "agent", owner.scopes), door="test")


def write(writer: Writer, count: int, *, limit: int, seconds: float = 0) -> bool:
    """Whether the write was let in; one that is refused is told when to come back."""
    with clock.frozen(NOON + timedelta(seconds=seconds)):
        try:
            limit_writes(writer, count, GuardSettings(max_writes_per_minute=limit))
        except TooManyWrites as refused:
            return not 1 <= refused.retry_after_seconds <= 60
    return True


def test_another_process_starts_with_what_this_one_wrote(writer: Writer) -> None:
    assert write(writer, 3, limit=4)
    forget_all()  # as a process that starts

    assert [write(writer, 2, limit=4), write(writer, 1, limit=4), write(writer, 1, limit=4)] == [False, True, False]


def test_processes_that_take_turns_pass_the_limit_by_a_hundredth_at_the_most(writer: Writer) -> None:
    from memoryhub.long_term_memory.services import write_limit

    shares: list[dict[tuple[int, str, str], write_limit._Share]] = [{}, {}, {}]
    let_in = 0
    for number in range(1_500):
        write_limit._shares = shares[number % 3]
        let_in += write(writer, 1, limit=1_000)

    assert 1_000 - 3 * 10 <= let_in <= 1_000 + 3 * 10


def test_the_next_minute_begins_anew_and_strangers_have_their_own(writer: Writer, owner: Principal) -> None:
    other = Writer.of(Principal(owner.workspace, "key", "other", "agent", owner.scopes), door="test")
    assert write(writer, 5, limit=5)

    assert not write(writer, 1, limit=5, seconds=59)
    assert write(other, 5, limit=5, seconds=59)
    assert write(writer, 5, limit=5, seconds=60)


def test_what_was_refused_does_not_count(writer: Writer) -> None:
    write(writer, 3, limit=5)
    forget_all()

    assert not write(writer, 100, limit=5)
    assert Tally.objects.get().count == 3
    assert write(writer, 2, limit=5)


def test_most_writes_ask_nothing_of_the_database(writer: Writer) -> None:
    write(writer, 1, limit=30_000)

    with CaptureQueriesContext(connection) as queries:
        for _ in range(1_000):
            write(writer, 1, limit=30_000)

    assert len(queries) == 3


def test_no_limit_counts_nothing(writer: Writer) -> None:
    assert write(writer, 10**9, limit=0)
    assert not Tally.objects.exists()
