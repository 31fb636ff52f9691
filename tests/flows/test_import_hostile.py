"""Files that lie, repeat themselves or go round in circles: nothing hangs, nothing is doubled, a preview tells the truth."""

import itertools
import json
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memoryhub.audit.models import ChangeSet
from memoryhub.flows import reading_memories
from memoryhub.flows.import_memories import ImportResult, import_stream
from memoryhub.long_term_memory.models import Memory, MemoryVersion, Scope, Tag
from memoryhub.long_term_memory.queries import MemoryFilter, list_memories
from memoryhub.long_term_memory.services import Writer, revert_change_set
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import Principal, command_principal
from tests.factories import make_workspace

SCOPE = {"user": "u"}
_numbers = itertools.count()


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(owner, door="test")


def load(writer: Writer, *items: Any, **options: Any) -> ImportResult:
    data = b"".join((item if isinstance(item, bytes) else json.dumps(item).encode()) + b"\n" for item in items)
    return import_stream(writer=writer, stream=BytesIO(data), **options)


def memory(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "content": f"text of {name}", "scope": SCOPE, **fields}


@pytest.mark.parametrize(
    "links",
    [
        {"a": "b", "b": "a"},
        {"a": "a"},
        {"a": "b", "b": "c", "c": "a"},
        {"a": "b", "b": "c", "c": "b", "d": "a"},
    ],
)
def test_a_circle_of_successors_leaves_one_that_is_current(writer: Writer, links: dict[str, str]) -> None:
    result = load(writer, *(memory(name, superseded_by=newer) for name, newer in links.items()))

    assert result.created == len(links)
    current = Memory.objects.current()
    assert current.count() >= 1
    for row in Memory.objects.select_related("superseded_by"):
        seen = {row.pk}
        while row.superseded_by is not None:
            row = row.superseded_by
            assert row.pk not in seen
            seen.add(row.pk)
    assert any("circle" in problem["reason"] for problem in result.skipped)


def test_a_successor_that_is_nowhere_is_no_reason_to_lose_a_memory(writer: Writer) -> None:
    assert load(writer, memory("a", superseded_by="nobody")).created == 1
    assert Memory.objects.current().count() == 1


def test_an_id_twice_with_two_texts_keeps_the_first_and_names_the_second(writer: Writer) -> None:
    result = load(writer, memory("a"), memory("b"), memory("a", content="another"), memory("a"))

    assert (result.created, result.deduplicated, result.conflicts) == (2, 1, 1)
    assert [item["line"] for item in result.conflict_items] == [3]
    assert Memory.objects.get(public_id="a").content == "text of a"


HOSTILE = [
    b"\xff\xfe{",
    b'{"id": "x", "content": "cut',
    b"null",
    b"[]",
    b'{"id": {"a": 1}, "content": "x"}',
    b'{"id": "n", "content": "a\\u0000b"}',
    b'{"id": "s", "content": "\\ud800"}',
    b'{"id": "i", "content": "x", "importance": 1e999}',
    b'{"id": "t", "content": "x", "created_at": "0001-01-01T00:00:00+14:00"}',
    b'{"id": "p", "content": "x", "scope": {"user": "u"}, "path": "/../etc"}',
    b'{"id": "v", "content": "x", "scope": {"user": "u"}, "valid_from": "2026-01-02", "valid_until": "2026-01-01"}',
    b'{"id": "o", "content": "x", "scope": "u"}',
    b'{"id": "d", "content": "' + b"x" * 200_000 + b'"}',
    b'{"id": "g", "content": "x", "scope": {"user": "' + b"u" * 300 + b'"}}',
]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_hostile_lines_cost_only_themselves(writer: Writer, ending: bytes, mark: bytes) -> None:
    good = [json.dumps(memory(name)).encode() for name in ("first", "last")]
    data = mark + ending.join([good[0], *HOSTILE, good[1], b""])

    result = import_stream(writer=writer, stream=BytesIO(data), format="memoryhub")

    assert result.created == 2
    assert {problem["line"] for problem in result.skipped} == set(range(2, len(HOSTILE) + 2))
    assert all(problem["reason"] for problem in result.skipped)


# --- any file --------------------------------------------------------------------------------------------------------
good_lines = st.builds(
    lambda name, text, user, path, tags, since: {
        "id": name,
        "content": text,
        "scope": {"user": user},
        **({"path": path} if path else {}),
        "tags": tags,
        **({"valid_from": since} if since else {}),
    },
    name=st.sampled_from(["a", "b", "c", "d"]),
    text=st.sampled_from(["tea", "milk", "深色"]),
    user=st.sampled_from(["u", "v"]),
    path=st.sampled_from([None, None, "/p", "/p/q"]),
    tags=st.lists(st.sampled_from(["x", "y"]), max_size=2),
    since=st.sampled_from([None, "2026-01-01T00:00:00Z"]),
)
files = st.lists(st.one_of(good_lines, good_lines, st.sampled_from(HOSTILE[:12])), max_size=9)


def counts() -> tuple[int, ...]:
    tables = (Memory, MemoryVersion, ChangeSet, Scope, Tag, Session)
    return tuple(table._default_manager.count() for table in tables)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(first=files, second=files)
@example(  # the fourth record is a double of the first, so the last one bears an id that is free
    first=[],
    second=[
        {"id": name, "content": "tea", "scope": {"user": "u"}, "tags": [], **more}
        for name, more in (("b", {}), ("a", {}), ("a", {}), ("a", {}), ("a", {"valid_from": "2026-01-01T00:00:00Z"}))
    ],
)
@example(  # a file where a directory stands
    first=[],
    second=[
        {"id": "a", "content": "tea", "scope": {"user": "u"}, "path": "/p/q", "tags": []},
        {"id": "b", "content": "tea", "scope": {"user": "u"}, "path": "/p", "tags": []},
    ],
)
def test_a_preview_says_what_the_import_does_and_writes_nothing(
    owner: Principal, monkeypatch: pytest.MonkeyPatch, first: list[Any], second: list[Any]
) -> None:
    monkeypatch.setattr(reading_memories, "CHUNK", 3)
    workspace = make_workspace(f"w{next(_numbers)}")
    writer = Writer.of(command_principal(workspace, "test"), door="test")
    load(writer, *first, format="memoryhub")
    live, before = list_memories(workspace, MemoryFilter()).count(), counts()

    preview = load(writer, *second, format="memoryhub", dry_run=True)
    untouched = counts()
    real = load(writer, *second, format="memoryhub")
    again = load(writer, *second, format="memoryhub")

    assert untouched == before
    for name in ("created", "deduplicated", "conflicts", "skipped"):
        assert getattr(preview, name) == getattr(real, name), name
    assert again.created == 0
    assert (real.change_set is None) == (real.created == 0)
    if real.change_set is not None:
        revert_change_set(writer=writer, change_set_id=real.change_set.public_id)
        assert list_memories(workspace, MemoryFilter()).count() == live
