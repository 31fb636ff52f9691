"""Which format a file is in, told by its first records."""

import json

import pytest

from memoryhub.interchange.formats import FORMATS, UnknownFormat, get_format
from tests.interchange.reading import read

SEED = {"memory_id": "mem_1_0", "content": "likes tea", "source_session_id": "s1"}
ENTITY = {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}
RELATION = {"type": "relation", "from": "Ann", "to": "Bob", "relationType": "knows"}
MEM0 = {"id": "a", "memory": "likes tea", "user_id": "u1"}
SERVICE = {"content": "likes tea", "content_hash": "ab", "tags": ["x"], "created_at": 1700000000.5}
ITEM = {"namespace": ["memories", "u1"], "key": "k", "value": {"text": "likes tea"}}
OWN = {"id": "mem_a", "content": "likes tea", "scope": {"user": "u1"}}


def dumps(value: object) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (dumps(SEED), "seed"),
        (dumps(SEED) + b"\n" + dumps(SEED), "seed"),
        (dumps([SEED]), "seed"),
        (dumps(ENTITY), "mcp"),
        (dumps(RELATION) + b"\n" + dumps(ENTITY), "mcp"),
        (dumps({"results": [MEM0]}), "mem0"),
        (dumps({"memories": [MEM0]}), "mem0"),
        (dumps([MEM0]), "mem0"),
        (json.dumps({"results": [MEM0]}, indent=2).encode(), "mem0"),
        (dumps({"export_metadata": {"n": 1}, "memories": [SERVICE]}), "mcp-memory-service"),
        (json.dumps({"export_metadata": {}, "memories": [{"content": "x"}]}, indent=4).encode(), "mcp-memory-service"),
        (dumps([ITEM]), "langgraph"),
        (dumps(ITEM), "langgraph"),
        (dumps({"items": [ITEM]}), "langgraph"),
        (dumps(OWN), "memoryhub"),
        (dumps({"items": [OWN], "next_cursor": None}), "memoryhub"),
        (json.dumps(OWN, indent=2).encode(), "memoryhub"),
        (b"# Notes\n- likes tea\n", "markdown"),
        (b"---\nname: x\n---\nlikes tea\n", "markdown"),
        (b"\xef\xbb\xbf" + dumps(SEED), "seed"),
        (b"\r\n\r\n" + dumps(SEED), "seed"),
        (b"{broken\n" + dumps(SEED), "seed"),
        (b"garbage\n" + dumps(SEED), "seed"),
        (json.dumps([MEM0]).encode("utf-16"), "mem0"),
    ],
)
def test_format_is_told_by_the_first_records(data: bytes, expected: str) -> None:
    name, records, _ = read(data)

    assert name == expected
    assert [record.content for record in records if record.content != "x"][:1] in (["likes tea"], ["Ann knows Bob"], [])
    assert records


def test_a_first_record_larger_than_what_is_looked_at_still_has_a_name() -> None:
    data = dumps([{**MEM0, "metadata": {"note": "y" * 200_000}}, MEM0])

    name, records, problems = read(data)

    assert (name, len(records), problems) == ("mem0", 2, [])


def test_notes_are_told_by_their_file_name() -> None:
    name, records, _ = read(b'{"content": "this is a note about JSON"}\n', file_name="MEMORY.md")

    assert name == "markdown"
    assert records[0].content == '{"content": "this is a note about JSON"}'


def test_an_empty_file_holds_nothing() -> None:
    assert read(b"") == ("memoryhub", [], [])
    assert read(b"\xef\xbb\xbf \r\n") == ("memoryhub", [], [])


def test_a_binary_file_is_refused() -> None:
    with pytest.raises(UnknownFormat, match="not text"):
        read(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe")


def test_json_without_one_good_record_is_read_line_by_line() -> None:
    name, records, problems = read(b"{broken\n{worse\n")

    assert (name, records, [problem.line for problem in problems]) == ("memoryhub", [], [1, 2])


@pytest.mark.parametrize("name", [*FORMATS, "MEM0", "mcp_memory_service", " seed "])
def test_a_format_is_found_by_its_name(name: str) -> None:
    assert get_format(name).name in FORMATS


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownFormat, match="mcp-memory-service"):
        get_format("csv")
