"""Every page that the URL conf has takes as many queries in a workspace of a thousand as in one of a few dozen."""

import pytest

from memoryhub.common import clock
from memoryhub.workspaces.models import Workspace
from tests.bench import page_times
from tests.bench._large_hub import Size, fill


@pytest.mark.django_db
def test_no_page_asks_more_of_a_larger_workspace(workspace: Workspace, other_workspace: Workspace) -> None:
    fill(other_workspace, Size(60, 300, 60), clock.now())  # usage on every day, as there
    fill(workspace, Size(1_000, 1_000, 1_000), clock.now())
    large, small = page_times.Visitor(workspace), page_times.Visitor(other_workspace)
    finds = page_times.Finds.of(workspace)
    here, there = page_times.Names(workspace, finds), page_times.Names(other_workspace, finds)

    grown = [
        (str(visit), few, many)
        for visit, beside in zip(page_times.every_visit(here), page_times.every_visit(there), strict=True)
        if (many := page_times.count_queries(large, visit))
        > (few := page_times.count_queries(small, beside)) + page_times.allowance(visit)
    ]

    assert grown == []


def test_no_page_is_left_out() -> None:
    assert page_times.forgotten_pages() == []
