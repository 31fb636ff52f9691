"""Writers wait their turn: a busy database is waited for, anything else is raised at once, and nothing is committed by half."""

import pytest
from django.db import OperationalError, connection, transaction

from memoryhub.session_cache.services import transactions
from memoryhub.session_cache.services.transactions import write_transaction
from memoryhub.workspaces.models import Workspace
from tests.factories import make_workspace

pytestmark = pytest.mark.django_db(transaction=True)
sqlite_only = pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL queues its writers itself")


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

        return Busy()

    return atomic, count


@sqlite_only
def test_a_busy_database_is_waited_for(monkeypatch):
    atomic, count = failing(3, "database is locked")
    monkeypatch.setattr(transactions.transaction, "atomic", atomic)

    with write_transaction():
        make_workspace("kept")

    assert count == [4]
    assert Workspace.objects.filter(name="kept").exists()


@sqlite_only
@pytest.mark.parametrize(("times", "message", "tries"), [(99, "database is locked", 5), (99, "disk I/O error", 1)])
def test_what_does_not_pass_is_raised(monkeypatch, times, message, tries):
    atomic, count = failing(times, message)
    monkeypatch.setattr(transactions.transaction, "atomic", atomic)

    with pytest.raises(OperationalError, match=message), write_transaction():
        raise AssertionError("it never began")

    assert count == [tries]
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
