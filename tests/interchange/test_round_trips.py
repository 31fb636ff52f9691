"""What comes in as a format goes out as that format unchanged, and a memory survives our own formats whole."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memoryhub.interchange.record import MemoryRecord
from tests.interchange.reading import read, write

EXAMPLES = settings(max_examples=60, deadline=None)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)
contents = texts.filter(str.strip)
names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=30)
plain_tags = st.lists(contents.map(str.strip).map(lambda text: text.replace(",", " ").strip() or "t"), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
extras = st.dictionaries(names.map(lambda name: "x-" + name), values, max_size=3)
moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
spellings = st.one_of(
    moments.map(lambda at: at.isoformat().replace("+00:00", "Z")),
    moments.map(lambda at: at.replace(tzinfo=None).isoformat()),
    moments.map(lambda at: at.isoformat(" ")),
    moments.map(lambda at: at.timestamp()),
    moments.map(lambda at: at.replace(microsecond=0).astimezone().isoformat()),
)


def optional(**fields: Any) -> Any:
    """Objects in which any of these fields may be absent."""
    return st.fixed_dictionaries({}, optional=fields)


def objects(required: dict[str, Any], **fields: Any) -> Any:
    return st.tuples(st.fixed_dictionaries(required), optional(**fields), extras).map(
        lambda parts: {**parts[2], **parts[1], **parts[0]}
    )


seed_objects = objects(
    {"memory_id": names, "content": contents},
    source_session_id=names,
    created_at=spellings,
    last_accessed=spellings,
    access_count=st.integers(0, 2**31 - 1),
    importance=st.floats(0, 1),
    tags=plain_tags,
    embedding=st.lists(st.floats(-1, 1), max_size=4) | st.none(),
)
mem0_objects = objects(
    {"id": names, "memory": contents},
    hash=texts,
    metadata=st.dictionaries(texts, values, max_size=3) | st.none(),
    user_id=names | st.none(),
    agent_id=names | st.none(),
    run_id=names | st.none(),
    categories=plain_tags | st.none(),
    created_at=spellings,
    updated_at=spellings | st.none(),
)
service_objects = objects(
    {"content": contents, "content_hash": texts},
    tags=plain_tags,
    created_at=moments.map(lambda at: at.timestamp()),
    updated_at=moments.map(lambda at: at.timestamp()) | st.none(),
    memory_type=names | st.none(),
    metadata=st.dictionaries(texts, values, max_size=3),
)
langgraph_items = objects(
    {
        "namespace": st.lists(names, max_size=4),
        "key": names,
        "value": st.one_of(
            st.tuples(st.sampled_from(["text", "content", "memory"]), contents, extras).map(
                lambda parts: {**parts[2], parts[0]: parts[1]}
            ),
            st.dictionaries(texts, values, max_size=3),
        ),
    },
    created_at=spellings,
    updated_at=spellings,
)
entities = objects(
    {
        "type": st.just("entity"),
        "name": names,
        "entityType": st.text("abcdefgh ", max_size=8),
        "observations": st.lists(contents, max_size=4, unique=True),
    }
)
relations = objects({"type": st.just("relation"), "from": names, "to": names, "relationType": names})

records = st.builds(
    MemoryRecord,
    content=contents,
    public_id=names,
    agent=names | st.none(),
    user=names | st.none(),
    project=names | st.none(),
    session=names | st.none(),
    event=names | st.none(),
    subject=texts,
    kind=st.sampled_from(["episodic", "semantic", "procedural"]),
    importance=st.floats(0, 1),
    tags=plain_tags.map(lambda tags: tuple(dict.fromkeys(tags))),
    pinned=st.booleans(),
    path=names | st.none(),
    state=st.sampled_from(["active", "fading", "archived"]),
    trust=st.sampled_from(["trusted", "unreviewed", "quarantined"]),
    created_at=moments,
    content_changed_at=moments,
    metadata_changed_at=moments,
    last_accessed_at=moments | st.none(),
    access_count=st.integers(0, 1000),
    valid_from=moments | st.none(),
    valid_until=moments | st.none(),
    expires_at=moments | st.none(),
    superseded_by=names | st.none(),
    origin=st.none() | extras.filter(bool).map(lambda rest: {"format": "seed", "record": rest}),
)


def through(name: str, data: str) -> str:
    _, found, problems = read(data.encode(), name=name)
    assert problems == []
    return write(name, found)


def lines(items: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


@given(st.lists(seed_objects, max_size=4))
@EXAMPLES
def test_seed_comes_out_as_it_went_in(items: list[dict[str, Any]]) -> None:
    assert [json.loads(line) for line in through("seed", lines(items)).split("\n") if line] == items


@given(st.lists(mem0_objects, max_size=4), st.sampled_from(["results", "memories", ""]))
@EXAMPLES
def test_mem0_comes_out_as_it_went_in(items: list[dict[str, Any]], wrapper: str) -> None:
    data = json.dumps({wrapper: items} if wrapper else items)

    assert json.loads(through("mem0", data)) == {"results": items}


@given(st.lists(service_objects, max_size=4), st.integers(0, 4).map(lambda n: n or None))
@EXAMPLES
def test_mcp_memory_service_comes_out_as_it_went_in(items: list[dict[str, Any]], indent: int | None) -> None:
    data = json.dumps({"export_metadata": {"total": len(items)}, "memories": items}, indent=indent)

    assert json.loads(through("mcp-memory-service", data))["memories"] == items


@given(st.lists(langgraph_items, max_size=4), st.booleans())
@EXAMPLES
def test_langgraph_comes_out_as_it_went_in(items: list[dict[str, Any]], one_a_line: bool) -> None:
    assert json.loads(through("langgraph", lines(items) if one_a_line else json.dumps(items))) == items


@given(
    st.lists(entities, max_size=4, unique_by=lambda entity: (entity["name"], entity["entityType"])),
    st.lists(relations, max_size=4),
)
@EXAMPLES
def test_a_knowledge_graph_comes_out_as_it_went_in(graph: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
    items = [*graph, *edges]

    assert [json.loads(line) for line in through("mcp", lines(items)).split("\n") if line] == items


@given(st.lists(records, max_size=4))
@EXAMPLES
def test_our_own_lines_hold_every_field(items: list[MemoryRecord]) -> None:
    assert_same(read(write("memoryhub", items).encode())[1], items)


@given(st.lists(records, max_size=4))
@EXAMPLES
def test_our_own_notes_hold_every_field(items: list[MemoryRecord]) -> None:
    assert_same(read(write("markdown", items).encode(), name="markdown")[1], items)


@given(records)
@EXAMPLES
def test_every_format_can_write_a_memory_of_any_origin(record: MemoryRecord) -> None:
    for name in ("seed", "mem0", "mcp-memory-service", "langgraph", "mcp"):
        _, found, problems = read(write(name, [record]).encode(), name=name)

        assert problems == []
        assert record.content in found[0].content


def assert_same(found: list[MemoryRecord], items: list[MemoryRecord]) -> None:
    assert [replace(record, line=0) for record in found] == items


def test_an_edit_shows_in_the_field_it_belongs_to_and_nowhere_else() -> None:
    before = {"id": "a", "memory": "old", "hash": "h1", "created_at": "2024-01-01 00:00:00", "metadata": {"k": 1}}
    _, [record], _ = read(json.dumps([before]).encode())
    changed_at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=1)
    after = json.loads(write("mem0", [replace(record, content="new", content_changed_at=changed_at)]))["results"][0]

    assert after == {
        **before,
        "memory": "new",
        "hash": "22af645d1859cb5ca6da0c484f1f37ea",
        "updated_at": "2024-01-02T00:00:00Z",
    }
