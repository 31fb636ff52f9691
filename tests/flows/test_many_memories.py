"""Ten thousand memories in and out, two thousand changed and gone: in bounded working memory and few statements."""

import gc
import io
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memoryhub.flows.export_memories import export_memories, find_format
from memoryhub.flows.import_memories import import_items, import_stream
from memoryhub.interchange.record import MemoryRecord
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries import MemoryFilter
from memoryhub.long_term_memory.services import BulkAction, Writer, bulk_edit, revert_change_set
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal, command_principal

MANY = 10_000
FORGOTTEN = 2_000
TEXT = "the agent keeps this note about a deploy on a Tuesday " * 8
BOUND_BYTES = 48 * 1024 * 1024  # a chunk of 500 with its documents; the whole file's rows would take several times more
ANA = ScopeNames(user="ana")


def records(count: int = MANY) -> Iterator[MemoryRecord]:
    for number in range(count):
        yield MemoryRecord(
            content=f"{number} {TEXT}", public_id=f"mem_{number}", user="ana", tags=("a", f"t{number % 7}")
        )


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(owner, door="test")


def traced_peak(use: Callable[[], Any]) -> tuple[Any, int]:
    """What it returns, and how much working memory Python took for it at the most, in bytes."""
    gc.collect()
    tracemalloc.start()
    try:
        return use(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_thousand_stream_in_and_out_and_come_back_the_same(writer: Writer, other_workspace: Workspace) -> None:
    done, import_peak = traced_peak(lambda: import_items(writer=writer, items=records(), format="memoryhub"))
    pieces, export_peak = traced_peak(
        lambda: sum(1 for _ in export_memories(workspace=writer.workspace, format=find_format("memoryhub")))
    )
    text = "".join(export_memories(workspace=writer.workspace, format=find_format("memoryhub")))
    there = Writer.of(command_principal(other_workspace, "move"), door="test")
    moved = import_stream(writer=there, stream=io.BytesIO(text.encode()), format="memoryhub")
    again = "".join(export_memories(workspace=other_workspace, format=find_format("memoryhub")))

    assert (done.created, done.skipped_count, pieces) == (MANY, 0, MANY)
    assert len(text) > 5 * 1024 * 1024
    assert import_peak < BOUND_BYTES
    assert export_peak < BOUND_BYTES
    assert (moved.created, moved.deduplicated, moved.conflicts, moved.skipped_count) == (MANY, 0, 0, 0)
    assert again == text


def test_forgetting_thousands_takes_few_statements_and_one_revert(writer: Writer) -> None:
    import_items(writer=writer, items=records(FORGOTTEN), format="memoryhub")

    with CaptureQueriesContext(connection) as queries:
        done = bulk_edit(writer=writer, wanted=MemoryFilter(scope=ANA), action=BulkAction(forget=True))

    assert (done.matched, done.changed) == (FORGOTTEN, FORGOTTEN)
    assert len([query for query in queries if not query["sql"].startswith("SAVEPOINT")]) < 100
    assert not Memory.objects.all().out_of_trash().exists()
    assert done.change_set is not None
    undone = revert_change_set(writer=writer, change_set_id=done.change_set.public_id)
    assert (undone.reverted, undone.skipped) == (FORGOTTEN, [])
