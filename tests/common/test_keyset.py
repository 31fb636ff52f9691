"""Lists are cut by cursor, in any order, without gaps or doubles."""

from datetime import timedelta

import pytest

from memoryhub.common.keyset import BadCursor, cut
from memoryhub.work.models import Job
from tests.factories import NOON

NEWEST = [("created_at", "desc"), ("id", "desc")]
BY_KIND = [("kind", "asc"), ("created_at", "desc"), ("id", "asc")]


@pytest.fixture
def jobs(workspace):
    return [
        Job.objects.create(
            workspace=workspace,
            public_id=f"job_{i}",
            kind="ab"[i % 2],
            run_after=NOON,
            created_at=NOON + timedelta(seconds=i // 3),  # ties on purpose
        )
        for i in range(10)
    ]


def walk(order, limit):
    found, cursor = [], None
    while True:
        rows, cursor = cut(Job.objects.all(), order=order, cursor=cursor, limit=limit)
        found += [row.public_id for row in rows]
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 3, 9, 10, 11])
def test_every_row_comes_once_and_in_order(jobs, limit):
    expected = [job.public_id for job in Job.objects.order_by("-created_at", "-id")]

    assert walk(NEWEST, limit) == expected


def test_keys_are_sorted_alone_and_rows_loaded_in_their_order(jobs):
    whole, cursor = cut(Job.objects.all(), order=BY_KIND, cursor=None, limit=4)

    by_keys, same = cut(Job.objects.all(), order=BY_KIND, cursor=None, limit=4, load=Job.objects.in_bulk)
    rest, _ = cut(Job.objects.all(), order=BY_KIND, cursor=same, limit=10, load=Job.objects.in_bulk)

    assert (by_keys, same) == (whole, cursor)
    assert {row.pk for row in by_keys + rest} == {row.pk for row in jobs}


def test_a_row_that_goes_while_keys_are_sorted_is_left_out_and_leads_on_all_the_same(jobs):
    def load(pks):
        Job.objects.filter(pk=pks[-1]).delete()
        return Job.objects.in_bulk(pks)

    first, cursor = cut(Job.objects.all(), order=NEWEST, cursor=None, limit=4, load=load)
    rest, _ = cut(Job.objects.all(), order=NEWEST, cursor=cursor, limit=10)

    assert (len(first), len(rest)) == (3, 6)


def test_mixed_directions(jobs):
    expected = [job.public_id for job in Job.objects.order_by("kind", "-created_at", "id")]

    assert walk(BY_KIND, 2) == expected


def test_a_row_that_goes_away_does_not_shift_the_rest(jobs):
    first, cursor = cut(Job.objects.all(), order=NEWEST, cursor=None, limit=4)
    first[0].delete()

    rest, _ = cut(Job.objects.all(), order=NEWEST, cursor=cursor, limit=10)

    assert not {row.public_id for row in rest} & {row.public_id for row in first}
    assert len(rest) == 6


def test_a_cursor_of_another_order_is_refused(jobs):
    _, cursor = cut(Job.objects.all(), order=NEWEST, cursor=None, limit=4)

    with pytest.raises(BadCursor):
        cut(Job.objects.all(), order=BY_KIND, cursor=cursor, limit=4)


@pytest.mark.parametrize("cursor", ["x", "////", "e30", "W10", "WzEsMl0", "é", "W1s"])
def test_nonsense_is_refused(jobs, cursor):
    with pytest.raises(BadCursor):
        cut(Job.objects.all(), order=NEWEST, cursor=cursor, limit=4)
