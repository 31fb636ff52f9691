"""Markdown notes, as people and agents write them."""

from io import BytesIO

from memoryhub.interchange import markdown
from memoryhub.interchange.record import MemoryRecord, Problem
from tests.interchange.reading import read, write

INDEX = b"""# Project

Built with Django 5.2.
Tests run with pytest.

## Preferences
- dark mode
- short answers,
  never more than five lines
* uses 4 spaces
1. first things first

```sh
# this is no heading
- and this is no bullet
```

## Empty heading
"""


def test_a_file_of_notes_has_one_note_for_each_bullet_and_each_paragraph() -> None:
    _, records, problems = read(INDEX, file_name="MEMORY.md")

    assert problems == []
    assert [(record.line, record.subject, record.content) for record in records] == [
        (3, "Project", "Built with Django 5.2.\nTests run with pytest."),
        (7, "Preferences", "dark mode"),
        (8, "Preferences", "short answers,\n  never more than five lines"),
        (10, "Preferences", "uses 4 spaces"),
        (11, "Preferences", "first things first"),
        (13, "Preferences", "```sh\n# this is no heading\n- and this is no bullet\n```"),
    ]


def test_windows_line_ends_are_not_part_of_a_note() -> None:
    _, records, _ = read(INDEX.replace(b"\n", b"\r\n"), file_name="MEMORY.md")

    assert not any("\r" in record.content for record in records)


def test_front_matter_fills_the_fields_and_keeps_what_is_not_ours() -> None:
    data = """---
name: How we deploy
# a comment
tags: [ops, 'blue-green', "深色"]
importance: 0.9
kind: procedural
created_at: 2026-01-02T03:04:05Z
user: u1
pinned: true
reviewers:
  - Ann
  - Bob
description: >
  folded over
  two lines
---

# Steps

1. build
2. push
""".encode()

    _, [note], problems = read(data, file_name="deploy.md")

    assert problems == []
    assert (note.subject, note.tags, note.importance, note.kind) == (
        "How we deploy",
        ("ops", "blue-green", "深色"),
        0.9,
        "procedural",
    )
    assert (note.user, note.pinned, note.created_at is not None) == ("u1", True, True)
    assert note.content == "# Steps\n\n1. build\n2. push"
    assert note.origin is not None
    assert note.origin["record"] == {
        "name": "How we deploy",
        "reviewers": ["Ann", "Bob"],
        "description": ">\nfolded over\ntwo lines",
    }


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    _, records, _ = read(b"---\nJust some text.\n---\nMore text.\n", file_name="notes.md")

    assert records[0].content == "---\nJust some text.\n---\nMore text."


def test_a_bad_field_names_the_line_and_the_reason() -> None:
    _, records, problems = read(b"---\nimportance: very\n---\ntext\n", file_name="a.md")

    assert (records, problems) == ([], [Problem(4, "importance is not a number")])


def test_a_note_in_a_folder_has_its_place_as_path() -> None:
    found = list(markdown.read_file(BytesIO(b"# Title\n- one\n- two\n"), path="/notes/a.md"))

    assert found == [MemoryRecord(content="# Title\n- one\n- two", path="/notes/a.md", line=1)]


def test_the_index_of_a_folder_is_a_list_of_notes() -> None:
    found = list(markdown.read_file(BytesIO(b"- one\n- two\n"), path="/MEMORY.md"))

    assert [(item.content, item.path) for item in found if isinstance(item, MemoryRecord)] == [
        ("one", None),
        ("two", None),
    ]


def test_rules_and_heads_inside_a_note_survive() -> None:
    tricky = "---\nmemoryhub: 1\n---\n\n\\---\n---  \n\nend\r\nof it\n\n"
    records = [MemoryRecord(content=tricky, public_id="mem_a"), MemoryRecord(content="next", public_id="mem_b")]

    _, found, problems = read(write("markdown", records).encode())

    assert ([record.content for record in found], problems) == ([tricky, "next"], [])


def test_a_note_as_its_own_file_comes_back() -> None:
    record = MemoryRecord(content="alpha\n", path="/p/notes.md", tags=("a b", "null", "1"), subject="x: y")

    [found] = list(markdown.read_file(BytesIO(markdown.write_note(record).encode()), path="/p/notes.md"))

    assert isinstance(found, MemoryRecord)
    assert (found.content, found.path, found.tags, found.subject) == (
        record.content,
        record.path,
        record.tags,
        record.subject,
    )


def test_a_file_that_is_no_text_is_named() -> None:
    assert list(markdown.read(BytesIO(b"\xff\xfe\xff"))) != []
    assert list(markdown.read(BytesIO(b"ab\xff"))) == [Problem(1, "not valid UTF-8")]
