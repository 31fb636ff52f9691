"""A bad line never stops a file: it is named with its number and a reason, and the lines around it are read."""

import json

import pytest

from memoryhub.interchange import json_stream
from memoryhub.interchange.record import MAX_CONTENT_BYTES
from tests.interchange.reading import read

GOOD = '{"memory_id": "a", "content": "good"}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{broken", "broken JSON"),
        ('{"memory_id": "x", "content": "cut', "broken JSON"),
        ('["a", "list"]', "not a JSON object"),
        ("42", "not a JSON object"),
        ("null", "not a JSON object"),
        ("NaN", "not a JSON number"),
        ('{"memory_id": "x"}', "content is missing"),
        ('{"content": null}', "content is missing"),
        ('{"content": 7}', "content is not text"),
        ('{"content": ["a"]}', "content is not text"),
        ('{"content": "   "}', "content is empty"),
        ('{"content": "a\\u0000b"}', "content contains a NUL character"),
        ('{"content": "\\ud800"}', "content contains half of a surrogate pair"),
        ('{"content": "x", "importance": "high"}', "importance is not a number"),
        ('{"content": "x", "importance": true}', "importance is not a number"),
        ('{"content": "x", "importance": 1.5}', "importance is not between 0 and 1"),
        ('{"content": "x", "importance": -0.1}', "importance is not between 0 and 1"),
        ('{"content": "x", "importance": 1e999}', "importance is not between 0 and 1"),
        ('{"content": "x", "importance": NaN}', "not a JSON number: NaN"),
        ('{"content": "x", "importance": 1' + "0" * 400 + "}", "importance is not between 0 and 1"),
        ('{"content": "x", "access_count": 1' + "0" * 5000 + "}", "a number has too many digits"),
        ('{"content": "x", "access_count": -1}', "access_count is not a whole number"),
        ('{"content": "x", "access_count": 1.5}', "access_count is not a whole number"),
        ('{"content": "x", "access_count": 99999999999}', "access_count is not a whole number"),
        ('{"content": "x", "tags": {"a": 1}}', "tags is not a list"),
        ('{"content": "x", "tags": ["a", 1]}', "tags holds something that is not text"),
        ('{"content": "x", "tags": ["' + "t" * 300 + '"]}', "a tag is longer than"),
        ('{"content": "x", "tags": ["a\\u0000"]}', "a tag contains a NUL character"),
        ('{"content": "x", "created_at": "yesterday"}', "created_at is not a time"),
        ('{"content": "x", "created_at": {}}', "created_at is not a time"),
        ('{"content": "x", "created_at": true}', "created_at is not a time"),
        ('{"content": "x", "created_at": 1e30}', "created_at is out of range"),
        ('{"content": "x", "created_at": "2026-02-30T00:00:00Z"}', "created_at is not a time"),
        ('{"content": "x", "created_at": "0001-01-01T00:00:00+14:00"}', "created_at is out of range"),
        ('{"content": "x", "memory_id": {"a": 1}}', "memory_id is not text"),
        ('{"content": "x", "memory_id": "' + "i" * 300 + '"}', "memory_id is longer than"),
        ('{"content": "x", "extra": "\\u0000"}', "the record contains a NUL character"),
        ('{"content": "x", "extra": "\\udfff"}', "the record contains half of a surrogate pair"),
        ('{"content": "x", "extra": 1e999}', "a number is too large"),
        ('{"content": "' + "x" * (MAX_CONTENT_BYTES + 1) + '"}', "content is larger than 102,400 bytes"),
        ('{"content": "' + "深" * 40_000 + '"}', "content is larger than 102,400 bytes"),
        ('{"content": "x", "extra": "' + "e" * 300_000 + '"}', "what stands beside the content is larger than"),
        ("[" * 100_000, "JSON nested too deeply"),
    ],
)
def test_a_bad_line_is_named_and_its_neighbours_are_read(line: str, reason: str) -> None:
    data = f"{GOOD}\n{line}\n{GOOD}\n".encode()

    _, records, problems = read(data, name="seed")

    assert [record.line for record in records] == [1, 3]
    assert [problem.line for problem in problems] == [2]
    assert problems[0].reason.startswith(reason)


def test_bytes_that_are_no_text_are_named() -> None:
    _, records, problems = read(GOOD.encode() + b'\n{"content": "\xff\xfe"}\n' + GOOD.encode(), name="seed")

    assert [record.line for record in records] == [1, 3]
    assert [(problem.line, problem.reason) for problem in problems] == [(2, "not valid UTF-8")]


def test_a_line_without_an_end_is_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_RECORD_BYTES", 1000)
    data = f'{GOOD}\n{{"content": "{"x" * 5000}"}}\n{GOOD}\n'.encode()

    _, records, problems = read(data, name="seed")

    assert [record.line for record in records] == [1, 3]
    assert "longer than" in problems[0].reason


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_marks_and_blank_lines_do_not_matter(newline: str, mark: bytes) -> None:
    data = mark + newline.join([GOOD, "", "  ", GOOD.replace('"a"', '"b"')]).encode()

    _, records, problems = read(data)

    assert ([record.line for record in records], problems) == ([1, 4], [])
    assert {record.content for record in records} == {"good"}


def test_line_separators_inside_a_text_are_no_line_ends() -> None:
    text = "one\u2028two\u0085three\x0bfour"

    _, records, problems = read(json.dumps({"memory_id": "a", "content": text}, ensure_ascii=False).encode())

    assert ([record.content for record in records], problems) == ([text], [])


LIST_PIECES = ['{"id": "a", "memory": "one"}', '{"id": "b", "memory": "two"}', '{"id": "c", "memory": "three"}']


@pytest.mark.parametrize(
    "before_after", [("[", "]"), ('{"results": [', "]}"), ('{"v": {"x": "]"}, "memories": [', '], "more": 1}')]
)
@pytest.mark.parametrize("separator", [",\n", ", "])
@pytest.mark.parametrize(
    "broken",
    ['{"id": "b", "memory": two}', '{"id": "b", "memory": 2}', '{"id": "b"}', "nonsense", '"text"', "12", "{}"],
)
def test_a_bad_element_is_named_and_its_neighbours_are_read(
    before_after: tuple[str, str], separator: str, broken: str
) -> None:
    pieces = [LIST_PIECES[0], broken, LIST_PIECES[2]]
    data = (before_after[0] + separator.join(pieces) + before_after[1]).encode()

    name, records, problems = read(data)

    assert name == "mem0"
    assert [record.content for record in records] == ["one", "three"]
    assert [problem.line for problem in problems] == [1 + ("\n" in separator)]


@pytest.mark.parametrize(
    "broken", ['{"id": "b", "memory": "two"', '{"id": "b", "memory": "two}', '{"id": "b", "memory": ["two"}']
)
def test_a_missing_bracket_or_quote_costs_one_element(broken: str) -> None:
    data = ("[\n" + ",\n".join([LIST_PIECES[0], broken, LIST_PIECES[2], LIST_PIECES[1]]) + "\n]").encode()

    _, records, problems = read(data)

    assert [record.content for record in records] == ["one", "three", "two"]
    assert 3 in [problem.line for problem in problems]


def test_a_file_that_was_cut_keeps_what_was_whole() -> None:
    data = ('{"results": [\n' + ",\n".join(LIST_PIECES))[:-8].encode()

    _, records, problems = read(data)

    assert [record.content for record in records] == ["one", "two"]
    assert {problem.line for problem in problems} == {4}


def test_text_behind_the_end_of_a_list_is_named() -> None:
    _, records, problems = read(b'[{"id": "a", "memory": "one"}]\n[{"id": "b", "memory": "two"}]')

    assert len(records) == 1
    assert [(problem.line, problem.reason) for problem in problems] == [
        (2, "there is more text behind the end of the list")
    ]


def test_an_element_beyond_the_limit_is_stepped_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_stream, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(json_stream, "CHUNK_BYTES", 64)
    huge = json.dumps({"id": "b", "memory": "x" * 5000})

    _, records, problems = read(("[" + ",\n".join([LIST_PIECES[0], huge, LIST_PIECES[2]]) + "]").encode(), name="mem0")

    assert [record.content for record in records] == ["one", "three"]
    assert [(problem.line, problem.reason[:21]) for problem in problems] == [(2, "the record is larger ")]
