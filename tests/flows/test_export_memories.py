"""Through the hub and out again: every format comes out as it went in."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from memoryhub.common import errors
from memoryhub.flows.export_memories import export_folder, export_memories, find_format
from memoryhub.flows.import_memories import import_folder, import_stream
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services.editing import edit_memory
from memoryhub.long_term_memory.services.forgetting import forget_memory
from memoryhub.long_term_memory.services.writer import MemoryChanges, Writer
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal, command_principal

SEED = [
    {
        "memory_id": "mem_1",
        "content": "likes tea",
        "source_session_id": "s1",
        "created_at": "2026-01-02T03:04:05.120000Z",
        "last_accessed": "2026-01-03T03:04:05Z",
        "access_count": 2,
        "importance": 0.7,
        "tags": ["z", "a"],
        "embedding": [0.5, -0.25],
    },
    {"memory_id": "mem_2", "content": "bare"},
    {"memory_id": "mem_3", "content": "nulls", "importance": None, "tags": None, "last_accessed": None},
]
MEM0 = [
    {"id": "a", "memory": "likes tea", "hash": "h", "metadata": {"k": [1, {"x": None}]}, "user_id": "u1"},
    {"id": "b", "memory": "no owner", "created_at": "2024-01-01T00:00:00-08:00", "updated_at": None},
    {"id": "c", "memory": "all ids", "user_id": "u", "agent_id": "g", "run_id": "r", "categories": ["z", "a"]},
]
SERVICE = [
    {
        "content": "likes tea",
        "content_hash": "h",
        "tags": ["z", "a"],
        "created_at": 1700000000.25,
        "metadata": {"q": 1},
    },
    {
        "content": "typed",
        "content_hash": "i",
        "memory_type": "note",
        "created_at": 1700000001.0,
        "updated_at": 1700000002.5,
    },
]
LANGGRAPH = [
    {"namespace": ["users", "u1"], "key": "k1", "value": {"text": "likes tea", "n": 1}},
    {"namespace": [], "key": "k2", "value": {"a": {"b": [1, 2.5, None]}}, "created_at": "2024-01-01T00:00:00+00:00"},
]
GRAPH = [
    {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea", "lives in Rome"], "x": 1},
    {"type": "entity", "name": "Bob", "entityType": "person", "observations": ["likes tea"]},
    {"type": "entity", "name": "Rome", "entityType": "city", "observations": []},
    {"type": "relation", "from": "Ann", "to": "Rome", "relationType": "lives_in", "since": 2020},
]


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(owner, door="test")


def load(writer: Writer, data: str, **options: Any) -> None:
    result = import_stream(writer=writer, stream=BytesIO(data.encode()), **options)
    assert (result.skipped, result.conflicts, result.deduplicated) == ([], 0, 0)


def dump(workspace: Workspace, name: str, **options: Any) -> str:
    return "".join(export_memories(workspace=workspace, format=find_format(name), **options))


def lines(items: list[Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def unlined(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("name", "data", "read", "expected"),
    [
        ("seed", lines(SEED), unlined, SEED),
        ("mem0", json.dumps({"results": MEM0}), json.loads, {"results": MEM0}),
        ("mem0", json.dumps(MEM0), json.loads, {"results": MEM0}),
        (
            "mcp-memory-service",
            json.dumps({"export_metadata": {"a": 1}, "memories": SERVICE}),
            lambda text: json.loads(text)["memories"],
            SERVICE,
        ),
        ("langgraph", json.dumps(LANGGRAPH), json.loads, LANGGRAPH),
        ("mcp", lines(GRAPH), unlined, GRAPH),
    ],
)
def test_a_format_comes_out_as_it_went_in(writer: Writer, name: str, data: str, read: Any, expected: Any) -> None:
    load(writer, data)

    assert read(dump(writer.workspace, name)) == expected


def test_a_whole_hub_moves_through_our_own_format(writer: Writer, other_workspace: Workspace) -> None:
    load(writer, lines(SEED))
    load(writer, json.dumps({"results": [{**item, "memory": f"mem0 {item['memory']}"} for item in MEM0]}))
    edit_memory(writer=writer, memory_id="mem_1", changes=MemoryChanges(pinned=True, add_tags=["深色"], path="/a.md"))
    there = Writer.of(command_principal(other_workspace, "move"), door="test")

    load(there, dump(writer.workspace, "memoryhub"))

    mine, theirs = (dump(workspace, "memoryhub") for workspace in (writer.workspace, other_workspace))
    assert mine == theirs
    assert len(unlined(mine)) == 6


@pytest.mark.parametrize("name", ["seed", "mem0", "mcp", "mcp-memory-service", "langgraph"])
def test_an_origin_survives_the_way_through_our_own_format(
    writer: Writer, other_workspace: Workspace, name: str
) -> None:
    data = {
        "seed": lines(SEED),
        "mem0": json.dumps(MEM0),
        "mcp": lines(GRAPH),
        "mcp-memory-service": json.dumps({"memories": SERVICE}),
        "langgraph": json.dumps(LANGGRAPH),
    }[name]
    load(writer, data)
    there = Writer.of(command_principal(other_workspace, "move"), door="test")

    load(there, dump(writer.workspace, "memoryhub"))

    assert dump(other_workspace, name) == dump(writer.workspace, name)


def test_edits_show_and_what_was_forgotten_is_gone(writer: Writer) -> None:
    load(writer, lines(GRAPH))
    tea, rome = (Memory.objects.get(subject="Ann", content=text).public_id for text in ("likes tea", "lives in Rome"))
    edit_memory(writer=writer, memory_id=tea, changes=MemoryChanges(content="prefers coffee"))
    forget_memory(writer=writer, memory_id=rome)

    assert unlined(dump(writer.workspace, "mcp"))[0]["observations"] == ["prefers coffee"]


def test_filters_choose_what_goes_out(writer: Writer) -> None:
    load(writer, json.dumps(MEM0))

    text = dump(writer.workspace, "memoryhub", wanted=MemoryFilter(scope=ScopeNames(user="u1")))

    assert [item["content"] for item in unlined(text)] == ["likes tea"]


def test_another_workspace_sees_nothing(writer: Writer, other_workspace: Workspace) -> None:
    load(writer, lines(SEED))

    assert dump(other_workspace, "memoryhub") == ""


def test_versions_come_along_when_asked_for(writer: Writer) -> None:
    load(writer, lines(SEED[:1]))
    edit_memory(writer=writer, memory_id="mem_1", changes=MemoryChanges(content="likes coffee"))

    [item] = unlined(dump(writer.workspace, "memoryhub", with_versions=True))

    assert [(version["version"], version["content"]) for version in item["versions"]] == [(1, "likes tea")]


def test_notes_go_out_into_a_folder_and_come_back(writer: Writer, other_workspace: Workspace, tmp_path: Path) -> None:
    load(writer, lines(SEED))
    edit_memory(writer=writer, memory_id="mem_2", changes=MemoryChanges(path="/deep/note", content="two\n---\nlines\n"))

    count = export_folder(workspace=writer.workspace, folder=tmp_path)
    there = Writer.of(command_principal(other_workspace, "move"), door="test")
    result = import_folder(writer=there, folder=tmp_path)

    assert (count, result.created, result.skipped) == (3, 3, [])
    assert (tmp_path / "deep" / "note.md").exists()
    mine, theirs = (
        sorted(dump(workspace, "memoryhub").splitlines()) for workspace in (writer.workspace, other_workspace)
    )
    assert mine == theirs


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(errors.Invalid, match="langgraph"):
        find_format("csv")
