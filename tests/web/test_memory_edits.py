"""Editing memories in place and on their page: what is saved, what is refused, and two people at one memory."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries.memories import tag_names
from memoryhub.long_term_memory.services import edit_memory, forget_memory
from memoryhub.long_term_memory.services.writer import MemoryChanges
from memoryhub.workspaces.models import Workspace
from tests.web.memory_cast import agent_of, make_memory

HTMX = {"HX-Request": "true", "HX-Current-URL": "http://testserver/memories?agent=reviewer"}


def save(client: Client, memory: Memory, *, htmx: bool = False, version: int | None = None, **fields: Any) -> Any:
    """Post the edit form of a memory as the page has it."""
    data = {"version": memory.version if version is None else version, **fields}
    return client.post(f"/memories/{memory.public_id}/edit", data, headers=HTMX if htmx else {})


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"importance": "0.8"}, "importance", 0.8),
        ({"importance": "0.5", "step": "0.1"}, "importance", 0.6),
        ({"importance": "0.95", "step": "0.1"}, "importance", 1.0),
        ({"importance": "0.05", "step": "-0.1"}, "importance", 0.0),
        ({"content": "Two\r\nlines."}, "content", "Two\nlines."),
    ],
)
def test_one_field_is_saved_and_the_others_stay(
    editor: Client, workspace: Workspace, fields: dict[str, str], name: str, value: Any
) -> None:
    memory = make_memory(workspace, tags=["style"], kind="procedural")

    save(editor, memory, **fields)

    saved = Memory.objects.get(pk=memory.pk)
    assert getattr(saved, name) == value
    assert (saved.kind, tag_names(saved), saved.version) == ("procedural", ["style"], 2)


def test_tags_are_added_and_removed(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, tags=["style"])

    save(editor, memory, add_tag=" review， 评审,review ", remove_tag="")
    memory.refresh_from_db()
    save(editor, memory, remove_tag="style")

    assert tag_names(Memory.objects.get(pk=memory.pk)) == ["review", "评审"]


def test_a_row_is_answered_as_a_part_with_an_undo(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)

    response = save(editor, memory, htmx=True, importance="0.9")
    page = response.content.decode()

    assert page.lstrip().startswith("<tr")
    assert "<html" not in page
    assert ChangeSet.objects.latest("id").public_id in page
    assert 'value="2"' in page  # the version that the next edit is based on


def test_saving_what_is_there_writes_no_version_and_offers_no_undo(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, importance=0.5)

    page = save(editor, memory, htmx=True, importance="0.5").content.decode()

    assert MemoryVersion.objects.filter(memory=memory).count() == 1
    assert "/memories/undo" not in page


def test_without_scripts_the_person_returns_to_the_list_with_an_undo(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)

    response = editor.post(
        f"/memories/{memory.public_id}/edit",
        {"version": 1, "importance": "0.9"},
        headers={"Referer": "http://testserver/memories?agent=reviewer"},
        follow=True,
    )

    assert response.redirect_chain == [("/memories?agent=reviewer", 302)]
    assert ChangeSet.objects.latest("id").public_id in response.content.decode()


def test_another_site_is_no_place_to_return_to(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)

    for headers in ({"Referer": "https://evil.example/memories"}, {"Referer": "http://testserver//evil.example"}):
        response = editor.post(
            f"/memories/{memory.public_id}/edit", {"version": memory.version, "importance": "0.9"}, headers=headers
        )
        assert response["Location"] == f"/memories/{memory.public_id}"
        memory.refresh_from_db()
    response = save(editor, memory, importance="0.1", next="https://evil.example/")
    assert response["Location"] == f"/memories/{memory.public_id}"


@pytest.mark.parametrize("htmx", [True, False])
@pytest.mark.parametrize(
    ("mine", "texts"),
    [
        ({"content": "Mine: tabs."}, ("Theirs: spaces.", "Mine: tabs.")),
        ({"importance": "0.9"}, ("0.20", "0.90", "Theirs: spaces.")),
        ({"add_tag": "mine"}, ("theirs", "+mine")),
        ({"remove_tag": "theirs"}, ("theirs", "-theirs")),
    ],
)
def test_the_second_of_two_editors_sees_both_versions_and_nothing_is_lost(
    editor: Client, workspace: Workspace, htmx: bool, mine: dict[str, str], texts: tuple[str, ...]
) -> None:
    memory = make_memory(workspace, "Indent as you like.", importance=0.5)
    theirs = MemoryChanges(content="Theirs: spaces.", importance=0.2, add_tags=["theirs"])
    edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=theirs)

    response = save(editor, memory, htmx=htmx, version=1, **mine)
    page = response.content.decode()

    assert response.status_code == 412
    assert all(text in page for text in texts)
    assert "reviewer&#x27;s key" in page
    saved = Memory.objects.get(pk=memory.pk)
    assert (saved.content, saved.importance, saved.version) == ("Theirs: spaces.", 0.2, 2)


def test_saving_mine_over_theirs_takes_one_more_click(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, "Indent as you like.")
    edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(content="Theirs."))
    conflict = save(editor, memory, version=1, content="Mine.").context["conflict"]

    editor.post(conflict["url"], {"version": conflict["version"], **dict(conflict["fields"])})

    assert Memory.objects.get(pk=memory.pk).content == "Mine."
    assert MemoryVersion.objects.filter(memory=memory, content="Theirs.").exists()


@pytest.mark.parametrize("version", ["", "x", "1.0", "-1", "9999999999"])
def test_an_edit_must_say_which_version_it_saw(editor: Client, workspace: Workspace, version: str) -> None:
    memory = make_memory(workspace)

    response = editor.post(f"/memories/{memory.public_id}/edit", {"version": version, "importance": "0.9"})

    assert response.status_code == 428
    assert Memory.objects.get(pk=memory.pk).importance == 0.5


@pytest.mark.parametrize("importance", ["1.1", "-0.1", "nan", "inf", "much", "", "1e400"])
def test_importance_is_a_number_from_0_to_1(editor: Client, workspace: Workspace, importance: str) -> None:
    memory = make_memory(workspace)

    assert save(editor, memory, htmx=True, importance=importance).status_code == 422
    assert Memory.objects.get(pk=memory.pk).version == 1


def test_what_is_wrong_is_said_beside_the_text_that_was_typed(editor: Client, workspace: Workspace) -> None:
    make_memory(workspace, "The other memory.")
    memory = make_memory(workspace, "This memory.")

    response = save(editor, memory, htmx=True, content="The other memory.")
    page = response.content.decode()

    assert response.status_code in (409, 422)
    assert "<textarea" in page
    assert ">The other memory.</textarea>" in page
    assert Memory.objects.get(pk=memory.pk).content == "This memory."


def test_all_facts_are_edited_on_the_page(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, tags=["old"])

    save(
        editor,
        memory,
        content="New text.",
        subject="Reviews",
        kind="procedural",
        tags="a, b",
        valid_until="2030-01-02T03:04",
    )

    saved = Memory.objects.get(pk=memory.pk)
    assert (saved.content, saved.subject, saved.kind, tag_names(saved)) == (
        "New text.",
        "Reviews",
        "procedural",
        ["a", "b"],
    )
    assert saved.valid_until is not None
    assert saved.valid_until.isoformat() == "2030-01-02T03:04:00+00:00"


def test_a_moment_that_nobody_touched_keeps_its_seconds(editor: Client, workspace: Workspace) -> None:
    exact = datetime(2030, 1, 2, 3, 4, 56, 789, tzinfo=UTC)
    memory = make_memory(workspace, valid_until=exact)
    form = editor.get(f"/memories/{memory.public_id}?edit=1").context["edit_form"]

    save(
        editor,
        memory,
        content="New.",
        kind="semantic",
        valid_until="2030-01-02T03:04",
        valid_until_shown=form.initial["valid_until_shown"],
    )

    saved = Memory.objects.get(pk=memory.pk)
    assert (saved.content, saved.valid_until) == ("New.", exact)


def test_undo_takes_the_change_back_and_leaves_later_ones_alone(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, "First.")
    save(editor, memory, content="Second.")
    change_set = ChangeSet.objects.latest("id").public_id

    editor.post("/memories/undo", {"change_set": change_set, "next": "/memories"})

    memory.refresh_from_db()
    assert memory.content == "First."
    edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(content="Third."))
    page = editor.post("/memories/undo", {"change_set": change_set, "next": "/memories"}, follow=True).content.decode()
    assert "left alone" in page
    assert Memory.objects.get(pk=memory.pk).content == "Third."


@pytest.mark.parametrize(
    ("do", "field", "value"),
    [
        ("pin", "pinned", True),
        ("archive", "state", "archived"),
        ("forget", "state", "forgotten"),
        ("trust", "trust", "trusted"),
    ],
)
def test_each_action_does_what_it_says_and_can_be_undone(
    editor: Client, workspace: Workspace, do: str, field: str, value: Any
) -> None:
    memory = make_memory(workspace, trust="unreviewed")
    before = getattr(memory, field)

    editor.post(f"/memories/{memory.public_id}/act", {"do": do, "version": 1})

    assert getattr(Memory.objects.get(pk=memory.pk), field) == value
    editor.post("/memories/undo", {"change_set": ChangeSet.objects.latest("id").public_id})
    assert getattr(Memory.objects.get(pk=memory.pk), field) == before


def test_a_forgotten_memory_is_restored_from_the_trash(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)
    forget_memory(writer=agent_of(workspace), memory_id=memory.public_id)

    editor.post(f"/memories/{memory.public_id}/act", {"do": "restore", "version": 2})

    assert Memory.objects.get(pk=memory.pk).state == "active"


def test_an_action_on_a_memory_that_changed_asks_to_look_again(editor: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)
    edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(content="Changed."))

    page = editor.post(
        f"/memories/{memory.public_id}/act", {"do": "forget", "version": 1}, follow=True
    ).content.decode()

    assert "changed this memory meanwhile" in page
    assert Memory.objects.get(pk=memory.pk).state == "active"


def test_viewers_and_strangers_change_nothing_by_hand(viewer: Client, stranger: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace)
    posts = {
        "edit": {"version": 1, "importance": "0.9"},
        "act": {"version": 1, "do": "forget"},
        "supersede": {"version": 1, "content": "x"},
        "rate": {"helpful": "1"},
        "erase": {"typed": memory.public_id},
        "versions/1/restore": {"version": 1},
    }

    for action, data in posts.items():
        assert viewer.post(f"/memories/{memory.public_id}/{action}", data).status_code == 403
        assert stranger.post(f"/memories/{memory.public_id}/{action}", data).status_code == 404
    saved = Memory.objects.get(pk=memory.pk)
    assert (saved.version, saved.state) == (1, "active")
