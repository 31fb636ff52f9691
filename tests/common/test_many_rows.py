"""Very many rows go in together, and what a single insert would refuse is refused."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from memoryhub.common.many_rows import AT_ONCE, insert_many
from memoryhub.long_term_memory.models import Tag
from memoryhub.workspaces.models import Workspace

TABLE, COLUMNS = Tag._meta.db_table, ("workspace_id", "name")


def rows_of(workspace: Workspace, numbers):
    return [(workspace.pk, f"tag-{number}") for number in numbers]


@pytest.mark.parametrize("count", [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE, 3 * AT_ONCE + 7])
def test_every_row_arrives_once(workspace: Workspace, count: int) -> None:
    insert_many(TABLE, COLUMNS, rows_of(workspace, range(count)))

    assert sorted(Tag.objects.values_list("name", flat=True)) == sorted(f"tag-{number}" for number in range(count))


def test_the_same_rows_arrive_where_statements_are_watched(workspace: Workspace) -> None:
    with CaptureQueriesContext(connection) as watched:
        insert_many(TABLE, COLUMNS, rows_of(workspace, range(2 * AT_ONCE)))

    assert Tag.objects.count() == 2 * AT_ONCE
    assert len(watched) >= 1


def test_a_double_is_refused_and_nothing_is_left(workspace: Workspace) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_many(TABLE, COLUMNS, rows_of(workspace, [*range(2 * AT_ONCE), 5]))

    assert Tag.objects.count() == 0


def test_doubles_are_left_out_where_that_is_asked_for(workspace: Workspace) -> None:
    insert_many(TABLE, COLUMNS, rows_of(workspace, range(10)))
    insert_many(TABLE, COLUMNS, rows_of(workspace, [*range(3 * AT_ONCE), 1, 1]), tail="ON CONFLICT DO NOTHING")

    assert Tag.objects.count() == 3 * AT_ONCE
