"""A thousand rows in one go, and many writers at one memory."""

import threading
import time
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.test.utils import CaptureQueriesContext

from memoryhub.common import errors
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries import MemoryFilter
from memoryhub.long_term_memory.services import (
    BulkAction,
    ChangedMeanwhile,
    MemoryChanges,
    MemoryDraft,
    ScopeNames,
    Writer,
    bulk_edit,
    edit_memory,
    remember,
    revert_change_set,
)
from memoryhub.workspaces.principals import command_principal
from tests.factories import make_workspace

ANA = ScopeNames(user="ana")
MANY = 1_000


def test_forgetting_many_takes_few_statements_and_one_revert(workspace: Any, owner: Any) -> None:
    writer = Writer.of(owner, door="test")
    for start in range(0, MANY, 1_000):
        drafts = [MemoryDraft(content=f"note {number}", scope=ANA) for number in range(start, start + 1_000)]
        remember(writer=writer, drafts=drafts, imported=True)
    remember(writer=writer, drafts=[MemoryDraft(content="of ben", scope=ScopeNames(user="ben"))])

    with CaptureQueriesContext(connection) as queries:
        done = bulk_edit(writer=writer, wanted=MemoryFilter(scope=ANA), action=BulkAction(forget=True))

    assert (done.matched, done.changed) == (MANY, MANY)
    assert len([query for query in queries if not query["sql"].startswith("SAVEPOINT")]) < 60
    assert [memory.content for memory in Memory.objects.all().out_of_trash()] == ["of ben"]
    assert done.change_set is not None
    assert done.change_set.subject_count == MANY
    undone = revert_change_set(writer=writer, change_set_id=done.change_set.public_id)
    assert (undone.reverted, undone.skipped) == (MANY, [])


@pytest.mark.django_db(transaction=True)
def test_writers_at_one_memory_count_versions_without_gaps_and_nobody_is_lost_silently() -> None:
    writer = Writer.of(command_principal(make_workspace("busy"), "test"), door="test")
    kept = remember(writer=writer, drafts=[MemoryDraft(content="start", scope=ANA)])[0]
    done, refused, failed = [], [], []

    def write(number: int) -> None:
        try:
            for _ in range(2_000):
                try:
                    seen = Memory.objects.get(public_id=kept.id).version
                    edit_memory(
                        writer=writer,
                        memory_id=kept.id,
                        changes=MemoryChanges(content=f"text of {number}"),
                        expected_version=seen,
                    )
                    done.append(number)
                    return
                except ChangedMeanwhile:
                    refused.append(number)
                except OperationalError:  # an in-memory database of a test has no busy timeout; a file's has
                    time.sleep(0.005)
            failed.append(number)
        except errors.HubError as error:
            failed.append(error)
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    numbers = list(MemoryVersion.objects.order_by("number").values_list("number", flat=True))
    assert failed == []
    assert sorted(done) == list(range(8))
    assert numbers == list(range(1, 10))
    contents = set(MemoryVersion.objects.values_list("content", flat=True))
    assert contents == {"start", *(f"text of {number}" for number in range(8))}
