"""What each foreign format's fields mean as a memory."""

import json
from datetime import UTC, datetime
from typing import Any

from memoryhub.interchange.record import MemoryRecord
from tests.interchange.reading import read, write

NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def one(value: Any) -> MemoryRecord:
    _, [record], problems = read(json.dumps(value).encode())
    assert problems == []
    return record


def test_seed() -> None:
    record = one(
        {
            "memory_id": "mem_1700000001_1",
            "content": "用户偏好深色主题",
            "source_session_id": "s1",
            "created_at": "2024-01-01T00:00:00Z",
            "last_accessed": "2024-02-01T00:00:00Z",
            "access_count": 3,
            "importance": 0.7,
            "tags": ["偏好", "ui", "ui"],
            "embedding": [0.1, 0.2],
        }
    )

    assert (record.public_id, record.session, record.access_count) == ("mem_1700000001_1", "s1", 3)
    assert (record.created_at, record.last_accessed_at) == (NEW_YEAR, datetime(2024, 2, 1, tzinfo=UTC))
    assert (record.importance, record.tags) == (0.7, ("偏好", "ui"))


def test_mem0() -> None:
    record = one(
        [
            {
                "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
                "memory": "Likes to play cricket on weekends",
                "hash": "285d07801ae42054732314853e9eadd7",
                "metadata": {"category": "hobbies", "tags": ["sport"]},
                "categories": ["leisure"],
                "user_id": "alice",
                "agent_id": "coach",
                "run_id": "run-1",
                "created_at": "2023-12-31T16:00:00-08:00",
                "updated_at": None,
            }
        ]
    )

    assert (record.user, record.agent, record.session) == ("alice", "coach", "run-1")
    assert (record.created_at, record.content_changed_at) == (NEW_YEAR, NEW_YEAR)
    assert record.tags == ("leisure", "sport")


def test_mcp_memory_service() -> None:
    record = one(
        {
            "export_metadata": {"total_memories": 1},
            "memories": [
                {
                    "content": "Likes tea",
                    "content_hash": "abc",
                    "tags": "drink, habit",
                    "created_at": 1704067200.0,
                    "updated_at": 1704153600.5,
                    "memory_type": "preference",
                    "metadata": {"source": "chat"},
                }
            ],
        }
    )

    assert record.created_at == NEW_YEAR
    assert record.content_changed_at == datetime(2024, 1, 2, 0, 0, 0, 500_000, tzinfo=UTC)
    assert record.tags == ("drink", "habit", "type:preference")


def test_langgraph() -> None:
    record = one(
        [
            {
                "namespace": ["memories", "users", "u1"],
                "key": "k1",
                "value": {"text": "Likes tea", "score": 3},
                "created_at": "2024-01-01T00:00:00+00:00",
                "updated_at": "2024-01-01T00:00:00+00:00",
            }
        ]
    )

    assert (record.content, record.user, record.subject) == ("Likes tea", "u1", "memories/users/u1/k1")
    assert record.tags == ("namespace:memories/users/u1",)


def test_langgraph_values_without_a_text_are_kept_as_their_json() -> None:
    record = one([{"namespace": ["prefs"], "key": "ui", "value": {"theme": "dark", "size": 2}}])

    assert json.loads(record.content) == {"theme": "dark", "size": 2}


def test_mcp_has_one_memory_for_each_observation_and_relation() -> None:
    data = "\n".join(
        json.dumps(item)
        for item in (
            {
                "type": "entity",
                "name": "Ann",
                "entityType": "person",
                "observations": ["likes tea", "", "lives in Rome"],
            },
            {"type": "entity", "name": "Rome", "entityType": "city", "observations": []},
            {"type": "relation", "from": "Ann", "to": "Rome", "relationType": "lives_in"},
            {"type": "relation", "from": "Ann", "to": "Rome"},
            {"type": "something"},
        )
    )

    _, records, problems = read(data.encode())

    assert [(record.subject, record.content, record.tags) for record in records] == [
        ("Ann", "likes tea", ("entity:Ann", "type:person")),
        ("Ann", "lives in Rome", ("entity:Ann", "type:person")),
        ("Rome", "Rome (city)", ("entity:Rome", "type:city")),
        ("Ann", "Ann lives_in Rome", ("entity:Ann", "entity:Rome", "relation:lives_in")),
    ]
    assert [(problem.line, problem.reason) for problem in problems] == [
        (1, "observation 2 is empty"),
        (4, "relationType is missing"),
        (5, "neither an entity nor a relation"),
    ]


def test_a_new_observation_joins_its_entity() -> None:
    _, records, _ = read(b'{"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea"]}')
    added = MemoryRecord(content="moved to Oslo", tags=("entity:Ann", "type:person"))
    foreign = MemoryRecord(content="uses tabs", user="u1")

    graph = [json.loads(line) for line in write("mcp", [*records, added, foreign]).splitlines()]

    assert graph == [
        {"type": "entity", "name": "Ann", "entityType": "person", "observations": ["likes tea", "moved to Oslo"]},
        {"type": "entity", "name": "u1", "entityType": "memory", "observations": ["uses tabs"]},
    ]


def test_a_relation_added_here_is_written_as_a_relation() -> None:
    added = MemoryRecord(content="Ann knows Bob", tags=("entity:Ann", "entity:Bob", "relation:knows"))

    assert json.loads(write("mcp", [added])) == {
        "type": "relation",
        "from": "Ann",
        "to": "Bob",
        "relationType": "knows",
    }
