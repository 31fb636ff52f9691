"""Changing many memories: preview, change, report, undo, export."""

import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.workspaces.models import Workspace
from tests.web.memory_cast import make_memories, make_memory


def tags_by_text(workspace: Workspace) -> dict[str, list[str]]:
    return {memory.content: tag_names(memory) for memory in Memory.objects.filter(workspace=workspace)}


def test_a_preview_counts_exactly_and_changes_nothing(editor: Client, workspace: Workspace) -> None:
    make_memories(workspace, ["a", "b"], agent="ops")
    make_memory(workspace, "c", agent="ops", tags=["old"])
    make_memory(workspace, "d", agent="writer")

    response = editor.get("/memories/bulk?agent=ops&action=add_tag&value=old")

    assert (response.context["matched"], response.context["changing"], response.context["unchanged"]) == (3, 2, 1)
    assert "agent ops" in response.content.decode()
    assert tags_by_text(workspace) == {"a": [], "b": [], "c": ["old"], "d": []}
    assert not ChangeSet.objects.filter(action="bulk").exists()


@pytest.mark.parametrize(
    ("action", "value", "field", "after"),
    [
        ("importance", "0,25", "importance", 0.25),
        ("pin", "", "pinned", True),
        ("archive", "", "state", "archived"),
        ("forget", "", "state", "forgotten"),
    ],
)
def test_all_that_match_are_changed_as_one_change_set_and_come_back(
    editor: Client, workspace: Workspace, action: str, value: str, field: str, after: Any
) -> None:
    make_memories(workspace, ["a", "b"], agent="ops")
    make_memory(workspace, "c", agent="writer")
    before = list(Memory.objects.order_by("id").values_list(field, flat=True))

    page = editor.post(
        "/memories/bulk", {"agent": "ops", "action": action, "value": value, "reason": "spring cleaning"}
    )

    assert list(Memory.objects.order_by("id").values_list(field, flat=True)) == [after, after, before[2]]
    change_set = ChangeSet.objects.latest("id")
    assert (change_set.reason, change_set.door, change_set.subject_count) == ("spring cleaning", "web", 2)
    assert change_set.public_id in page.content.decode()
    editor.post("/memories/undo", {"change_set": change_set.public_id})
    assert list(Memory.objects.order_by("id").values_list(field, flat=True)) == before


def test_tags_are_added_to_and_taken_from_picked_rows_only(editor: Client, workspace: Workspace) -> None:
    first, _second = make_memories(workspace, ["a", "b"], tags=["old"])

    editor.post("/memories/bulk", {"id": [first.public_id], "action": "add_tag", "value": "new, newer"})
    editor.post("/memories/bulk", {"id": [first.public_id], "action": "remove_tag", "value": "old"})

    assert tags_by_text(workspace) == {"a": ["new", "newer"], "b": ["old"]}


def test_restore_without_a_state_means_the_trash_and_the_archive(editor: Client, workspace: Workspace) -> None:
    make_memories(workspace, ["a", "b"], agent="ops")
    editor.post("/memories/bulk", {"agent": "ops", "action": "forget"})
    make_memory(workspace, "c", agent="ops")

    preview = editor.get("/memories/bulk?agent=ops&action=restore")
    editor.post("/memories/bulk", {"agent": "ops", "action": "restore"})

    assert preview.context["matched"] == 2
    assert set(Memory.objects.values_list("state", flat=True)) == {"active"}


def test_a_search_is_changed_as_it_was_found(editor: Client, workspace: Workspace) -> None:
    make_memory(workspace, "The staging database is restored on Sundays.", agent="ops")
    make_memory(workspace, "Likes tabs.", agent="ops")

    editor.post("/memories/bulk", {"q": "database", "action": "pin"})

    assert list(Memory.objects.order_by("id").values_list("pinned", flat=True)) == [True, False]


@pytest.mark.parametrize(
    ("action", "value"),
    [
        ("add_tag", " , "),
        ("importance", "much"),
        ("importance", "7"),
        ("importance", "nan"),
        ("explode", ""),
        ("add_tag", "x" * 201),
    ],
)
def test_what_makes_no_sense_changes_nothing(editor: Client, workspace: Workspace, action: str, value: str) -> None:
    make_memory(workspace)

    response = editor.post("/memories/bulk", {"action": action, "value": value})

    assert response.status_code == 422
    assert "Nothing was changed." in response.content.decode()
    assert Memory.objects.get().version == 1


def test_other_workspaces_are_out_of_reach(editor: Client, workspace: Workspace, other_workspace: Workspace) -> None:
    theirs = make_memory(other_workspace, "theirs")

    editor.post("/memories/bulk", {"id": theirs.public_id, "action": "forget"})
    editor.post("/memories/bulk", {"action": "forget"})

    assert Memory.objects.get(pk=theirs.pk).state == "active"


def test_viewers_may_not(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace)

    assert viewer.get("/memories/bulk?action=pin").status_code == 403
    assert viewer.post("/memories/bulk", {"action": "pin"}).status_code == 403


def test_what_matches_is_exported_in_the_chosen_format(editor: Client, workspace: Workspace) -> None:
    make_memory(workspace, "mine", agent="ops", tags=["deploy"])
    make_memory(workspace, "not mine", agent="writer")

    response = editor.post("/memories/bulk", {"agent": "ops", "action": "export", "format": "seed"})

    [line] = b"".join(response.streaming_content).decode().splitlines()
    assert (json.loads(line)["content"], json.loads(line)["tags"]) == ("mine", ["deploy"])
    assert response["Content-Disposition"].startswith("attachment")
    assert editor.post("/memories/bulk", {"action": "export", "format": "no-such"}).status_code == 422


def test_a_change_of_many_takes_few_queries(editor: Client, workspace: Workspace) -> None:
    make_memories(workspace, [f"a {number}" for number in range(600)], agent="ops")

    with CaptureQueriesContext(connection) as queries:
        editor.post("/memories/bulk", {"agent": "ops", "action": "pin"})

    assert Memory.objects.filter(pinned=True).count() == 600
    assert len(queries) < 60


def test_undo_on_the_report_comes_back_to_the_list_that_was_changed(editor: Client, workspace: Workspace) -> None:
    make_memories(workspace, ["a", "b"], agent="ops")

    report = editor.post("/memories/bulk", {"agent": "ops", "action": "pin"})
    asked = re.search(
        r'action="/memories/undo">.*?name="change_set" value="([^"]+)".*?name="next" value="([^"]+)"',
        report.content.decode(),
    )
    assert asked is not None
    undone = editor.post("/memories/undo", {"change_set": asked[1], "next": asked[2]}, follow=True)

    assert undone.redirect_chain == [("/memories?agent=ops", 302)]
    assert "Undone." in undone.content.decode()
    assert not Memory.objects.filter(pinned=True).exists()
