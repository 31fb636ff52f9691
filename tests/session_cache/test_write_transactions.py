"""Writers wait their turn: a busy database is waited for, anything else is raised at once, and nothing is committed by half."""

import pytest
from django.db import OperationalError, connection, transaction

from memoryhub.session_cache.services import transactions
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Workspace
from tests.factories import make_workspace

pytestmark = pytest.mark.django_db(transaction=True)
BUSY = "database is locked"


def failing(times, message):
    """An atomic that can't begin so many times."""
    real, count = transaction.atomic, [0]

    def atomic():
        count[0] += 1
        if count[0] > times:
            return real()

        class Busy:
            def __enter__(self):
                raise OperationalError(message)

            def __exit__(self, *error):
                raise AssertionError("it has not begun")

        return Busy()

    return atomic, count


def test_a_busy_database_is_waited_for_where_it_has_no_queue_of_its_own(monkeypatch):
    queues_itself = connection.vendor == "postgresql"
    atomic, count = failing(0 if queues_itself else transactions.BUSY_TIMEOUTS - 1, BUSY)
    monkeypatch.setattr(transactions.transaction, "atomic", atomic)

    with write_transaction():
        make_workspace("kept")

    assert count == [1 if queues_itself else transactions.BUSY_TIMEOUTS]
    assert Workspace.objects.filter(name="kept").exists()


@pytest.mark.parametrize(("message", "tries_on_sqlite"), [(BUSY, transactions.BUSY_TIMEOUTS), ("disk I/O error", 1)])
def test_what_does_not_pass_is_raised(monkeypatch, message, tries_on_sqlite):
    atomic, count = failing(99, message)
    monkeypatch.setattr(transactions.transaction, "atomic", atomic)

    with pytest.raises(OperationalError, match=message), write_transaction():
        raise AssertionError("it never began")

    assert count == [tries_on_sqlite if connection.vendor == "sqlite" else 1]
    assert transactions._turn.acquire(blocking=False)
    transactions._turn.release()


def fail_after_making(name):
    with write_transaction():
        make_workspace(name)
        raise KeyError(name)


def test_an_error_rolls_everything_back_and_frees_the_turn():
    with pytest.raises(KeyError):
        fail_after_making("gone")

    assert not Workspace.objects.filter(name="gone").exists()
    with write_transaction():
        make_workspace("kept")
    assert not connection.in_atomic_block


def test_inside_another_transaction_it_is_a_part_of_it():
    with transaction.atomic():
        with write_transaction():
            make_workspace("inner")
        transaction.set_rollback(True)

    assert not Workspace.objects.filter(name="inner").exists()
