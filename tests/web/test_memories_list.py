"""The list of memories: filters, facets, order, search, and what each role sees of it."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryhub.common import clock
from memoryhub.long_term_memory.services import edit_memory, forget_memory
from memoryhub.long_term_memory.services.writer import MemoryChanges
from memoryhub.workspaces.models import Workspace
from tests.web.memory_cast import XSS, agent_of, make_memories, make_memory


def shown(response: Any) -> list[str]:
    """The texts of the rows, in order."""
    return [row.excerpt for row in response.context["rows"]]


def test_the_newest_memory_comes_first_with_its_scope_tags_and_figures(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "Deploys on Tuesdays.", agent="ops", importance=0.9, tags=["deploy"])
    make_memory(workspace, "Prefers dark themes.", agent="writer", user="李明", importance=0.6)

    response = viewer.get("/memories")

    assert shown(response) == ["Prefers dark themes.", "Deploys on Tuesdays."]
    first = response.context["rows"][0]
    assert [link.text for link in first.scope] == ["writer", "李明"]
    assert (first.importance, round(first.strength, 3)) == (0.6, 0.6)


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("agent=ops", ["deploy"]),
        ("user=ana", ["style", "kind"]),
        ("project=/srv/shop", ["deploy"]),
        ("tag=style", ["style"]),
        ("tag=style&tag=review", ["style"]),
        ("tag=style&tag=none-such", []),
        ("kind=procedural", ["kind"]),
        ("state=archived", []),
        ("trust=trusted", ["style", "kind", "deploy"]),
        ("agent=nobody", []),
        ("agent=ops&user=ana", []),
        ("kind=no-such-kind", ["style", "kind", "deploy"]),
        ("since=2999-01-01", []),
        ("until=1999-01-01", []),
        ("created=7d", ["style", "kind", "deploy"]),
        ("view=pinned", ["deploy"]),
        ("session=s-1", ["style"]),
    ],
)
def test_every_filter_narrows(viewer: Client, workspace: Workspace, query: str, texts: list[str]) -> None:
    make_memory(workspace, "deploy", agent="ops", project="/srv/shop", pinned=True)
    make_memory(workspace, "kind", agent="reviewer", user="ana", kind="procedural")
    make_memory(workspace, "style", agent="reviewer", user="ana", tags=["style", "review"], session="s-1")

    assert shown(viewer.get(f"/memories?{query}")) == texts


def test_the_trash_is_left_out_until_it_is_asked_for(viewer: Client, workspace: Workspace) -> None:
    gone = make_memory(workspace, "gone")
    forget_memory(writer=agent_of(workspace), memory_id=gone.public_id)

    assert shown(viewer.get("/memories")) == []
    assert shown(viewer.get("/memories?state=forgotten")) == ["gone"]


def test_facets_count_and_a_choice_does_not_hide_the_other_values(viewer: Client, workspace: Workspace) -> None:
    make_memories(workspace, ["a", "b"], agent="ops", tags=["deploy"])
    make_memory(workspace, "c", agent="writer")

    menus = {menu.name: menu for menu in viewer.get("/memories?agent=ops").context["facets"]}

    assert [(value.label, value.count, value.chosen) for value in menus["agent"].values] == [
        ("ops", "2", True),
        ("writer", "1", False),
    ]
    assert [(value.label, value.count) for value in menus["tag"].values] == [("deploy", "2")]
    assert menus["agent"].values[1].url == "/memories?agent=writer"
    assert menus["tag"].values[0].url == "/memories?agent=ops&tag=deploy"


def test_each_chip_takes_its_own_filter_away(viewer: Client, workspace: Workspace) -> None:
    chips = viewer.get("/memories?agent=ops&tag=a&tag=b&sort=importance").context["chips"]

    assert [(chip.label, chip.value, chip.url) for chip in chips] == [
        ("agent", "ops", "/memories?tag=a&tag=b&sort=importance"),
        ("tag", "a", "/memories?agent=ops&tag=b&sort=importance"),
        ("tag", "b", "/memories?agent=ops&tag=a&sort=importance"),
    ]


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("sort=importance", ["high", "middle", "low"]),
        ("sort=importance&dir=asc", ["low", "middle", "high"]),
        ("sort=created", ["low", "high", "middle"]),
        ("sort=no-such-order", ["low", "high", "middle"]),
    ],
)
def test_a_column_sorts_both_ways(viewer: Client, workspace: Workspace, query: str, order: list[str]) -> None:
    for content, importance in (("middle", 0.5), ("high", 0.9), ("low", 0.1)):
        make_memory(workspace, content, importance=importance)

    assert shown(viewer.get(f"/memories?{query}")) == order


def test_pages_by_cursor_show_each_memory_once(viewer: Client, workspace: Workspace) -> None:
    make_memories(workspace, [f"memory {number}" for number in range(65)], importance=0.5)

    url, seen = "/memories?sort=importance", []
    while url:
        response = viewer.get(url)
        seen += shown(response)
        url = response.context["page"].next_url

    assert sorted(seen) == sorted(f"memory {number}" for number in range(65))


def test_search_finds_by_words_inside_the_filters(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "The staging database is restored every Sunday night.", agent="ops")
    make_memory(workspace, "The database password rotates monthly.", agent="writer")
    make_memory(workspace, "周报用中文写，发给项目组之前先给王芳看一遍。", agent="writer")

    assert shown(viewer.get("/memories?q=database&agent=ops")) == [
        "The staging database is restored every Sunday night."
    ]
    assert shown(viewer.get("/memories?q=周报"))[0].startswith("周报用中文写")
    assert shown(viewer.get("/memories?q=zebra")) == []


def test_search_looks_into_the_trash_when_that_is_shown(viewer: Client, workspace: Workspace) -> None:
    gone = make_memory(workspace, "The old deploy calendar.")
    forget_memory(writer=agent_of(workspace), memory_id=gone.public_id)

    assert shown(viewer.get("/memories?q=calendar&state=forgotten")) == ["The old deploy calendar."]
    assert shown(viewer.get("/memories?q=calendar")) == []


def test_an_empty_workspace_teaches_with_a_command_for_this_server(viewer: Client, workspace: Workspace) -> None:
    page = viewer.get("/memories").content.decode()

    assert "curl -X POST http://testserver/api/v1/memories" in page
    assert "$MEMORYHUB_KEY" in page


def test_nothing_found_is_not_nothing_there(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace)

    page = viewer.get("/memories?tag=none-such").content.decode()

    assert "Nothing matches" in page
    assert "curl" not in page


def test_a_viewer_sees_no_control_that_changes_anything(viewer: Client, editor: Client, workspace: Workspace) -> None:
    make_memory(workspace, tags=["style"])

    page, editors_page = viewer.get("/memories").content.decode(), editor.get("/memories").content.decode()

    for control in ('type="range"', 'type="checkbox"', "/edit", "/memories/bulk", "/memories/new", "/memories/import"):
        assert control in editors_page
        assert control not in page


def test_strangers_see_nothing_of_it(stranger: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, "Only for home.")

    assert "Only for home." not in stranger.get("/memories").content.decode()
    assert stranger.get(f"/memories/{memory.public_id}").status_code == 404


@pytest.mark.parametrize("attack", XSS)
def test_stored_content_is_data_in_every_place(editor: Client, workspace: Workspace, attack: str) -> None:
    memory = make_memory(
        workspace, f"note {attack}", agent=f"a{attack}", user=f"u{attack}", tags=[f"t{attack}"], subject=attack
    )

    for url in (
        "/memories",
        f"/memories?edit={memory.public_id}",
        f"/memories/{memory.public_id}",
        "/memories?q=note",
        "/search?q=note",
    ):
        page = editor.get(url).content.decode()
        assert (attack in page) == (
            not set(attack) & set("<>\"'")
        )  # what needs no escape stands there as it was written


def test_no_query_per_row(viewer: Client, workspace: Workspace) -> None:
    make_memories(workspace, [f"few {number}" for number in range(10)], tags=["a", "b"], session="s-1")
    viewer.get("/memories")
    with CaptureQueriesContext(
        connection,
    ) as few:
        viewer.get("/memories")
    make_memories(workspace, [f"many {number}" for number in range(990)], tags=["a", "b"], session="s-2")

    with CaptureQueriesContext(connection) as many:
        response = viewer.get("/memories")

    assert response.context["total_text"] == "1,000 memories"
    assert len(many) <= len(few) + 1  # a sample above 500 rows counts its tags by one more subquery
    assert len(many) < 30
    assert len(response.content) < 200_000


def test_a_fade_is_announced_with_its_date(viewer: Client, workspace: Workspace) -> None:
    now = clock.now()
    make_memory(
        workspace, "soon", importance=0.5, last_accessed_at=now - timedelta(days=8), created_at=now - timedelta(days=9)
    )

    row = viewer.get("/memories").context["rows"][0]

    assert re.fullmatch(r"fades \d{1,2} \w{3}", row.fate.text)
    assert row.strength < 0.5


def test_strengths_are_drawn_when_they_are_asked_for(viewer: Client, workspace: Workspace) -> None:
    for content, importance in (("weak", 0.2), ("strong", 0.9), ("strongest", 1.0)):
        make_memory(workspace, content, agent="ops", importance=importance)
    make_memory(workspace, "elsewhere", agent="writer")

    closed = viewer.get("/memories?agent=ops")
    bars = viewer.get(closed.context["strengths_url"]).context["strengths"]

    assert "strengths" not in closed.context
    assert {band.label: band.count for band in bars.bands if band.count} == {
        "0.20 – 0.25": 1,
        "0.90 – 0.95": 1,
        "0.95 – 1.00": 1,
    }
    assert bars.summary == "1 of 3 memories are weaker than 0.3."


def test_the_lists_of_what_fades_and_what_nobody_uses(viewer: Client, workspace: Workspace) -> None:
    now = clock.now()
    old = {"created_at": now - timedelta(days=200), "last_accessed_at": now - timedelta(days=120)}
    make_memory(workspace, "unused", importance=1.0, pinned=True, **old)
    make_memory(workspace, "fresh", importance=0.9)
    fading = make_memory(workspace, "fading soon", importance=0.35, last_accessed_at=now, created_at=now)

    assert shown(viewer.get("/memories?view=unused")) == ["unused"]
    assert shown(viewer.get("/memories?view=fading-week")) == ["fading soon"]
    assert fading.state == "active"


def test_new_memories_are_announced_and_shown_on_request(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "first")
    watch_url = viewer.get("/memories").context["watch_url"]
    quiet = viewer.get(watch_url, headers={"HX-Request": "true"}).content.decode()
    make_memories(workspace, ["second", "third"])

    news = viewer.get(watch_url, headers={"HX-Request": "true"}).content.decode()

    assert "new, show" not in quiet
    assert "2 new, show" in news
    assert "<html" not in news


def test_empty_fields_of_a_form_leave_the_address(viewer: Client, workspace: Workspace) -> None:
    response = viewer.get("/memories?q=&agent=ops&since=")

    assert (response.status_code, response["Location"]) == (302, "/memories?agent=ops")


@pytest.mark.parametrize("url", ["/memories?cursor=nonsense", "/memories?cursor=W1tdXQ"])
def test_a_broken_cursor_is_a_plain_error(viewer: Client, workspace: Workspace, url: str) -> None:
    assert viewer.get(url).status_code == 422


def test_ids_from_elsewhere_may_hold_any_character(viewer: Client, workspace: Workspace) -> None:
    strange = "notes/2024?#ä\n1"
    make_memory(workspace, "from elsewhere", public_id=strange)

    url = viewer.get("/memories").context["rows"][0].url

    assert "from elsewhere" in viewer.get(url).content.decode()


def test_a_team_shares_saved_filters(editor: Client, viewer: Client, workspace: Workspace) -> None:
    editor.post(
        "/memories/filters/save", {"name": "Ops  deploys", "query": "agent=ops&tag=deploy&sort=importance&nonsense=1"}
    )

    saved = viewer.get("/memories?agent=ops&tag=deploy").context["saved"]

    assert saved == [{"name": "Ops deploys", "url": "/memories?agent=ops&tag=deploy", "current": True}]
    assert viewer.post("/memories/filters/remove", {"name": "Ops deploys"}).status_code == 403
    editor.post("/memories/filters/remove", {"name": "Ops deploys"})
    assert viewer.get("/memories").context["saved"] == []


@pytest.mark.parametrize(
    ("name", "query"), [("", "agent=ops"), ("x" * 61, "agent=ops"), ("nothing", "sort=importance"), ("nothing", "")]
)
def test_a_filter_without_a_name_or_a_filter_is_refused(
    editor: Client, workspace: Workspace, name: str, query: str
) -> None:
    assert editor.post("/memories/filters/save", {"name": name, "query": query}).status_code == 422


def test_a_superseded_memory_is_marked(viewer: Client, workspace: Workspace) -> None:
    old = make_memory(workspace, "Line length is 100.")
    make_memory(workspace, "Line length is 120.", supersedes=old.public_id)

    marks = {row.excerpt: [mark.text for mark in row.marks] for row in viewer.get("/memories").context["rows"]}

    assert marks == {"Line length is 120.": [], "Line length is 100.": ["superseded"]}


def test_a_memory_with_many_tags_stays_a_row(viewer: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)
    tags = [f"tag {number:02}" for number in range(40)]
    edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(tags=tags))

    row = viewer.get("/memories").context["rows"][0]

    assert (len(row.tags), row.more_tags) == (6, 34)
