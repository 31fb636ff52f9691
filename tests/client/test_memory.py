"""`hub.memory` over a running hub: every method does what it says."""

import itertools
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from memoryhub.client import MemoryHub, errors
from memoryhub.web import memory_snippets
from tests.live import Hub

_numbers = itertools.count()


@pytest.fixture
def ana() -> dict[str, str]:
    return {"user": f"ana {next(_numbers)}"}


def test_what_is_remembered_is_found_read_and_changed(hub: MemoryHub, ana: dict[str, str]) -> None:
    made = hub.memory.remember("likes green tea", scope=ana, tags=["drink"], importance=0.8)
    again = hub.memory.remember("likes green tea", scope=ana)

    [found] = hub.memory.search("tea", scope=ana, explain=True)
    memory = hub.memory.get(made["id"])
    changed = hub.memory.update(made["id"], importance=0.3, add_tags=["leaf"], version=memory["version"])

    assert (made["created"], again["deduplicated"], again["id"]) == (True, True, made["id"])
    assert (found["id"], found["rank"], found["session"]) == (made["id"], 1, hub.session)
    assert "relevance" in found["explain"]
    assert (changed["importance"], changed["tags"], changed["version"]) == (0.3, ["drink", "leaf"], 2)
    assert [version["version"] for version in hub.memory.versions(made["id"])] == [2, 1]


def test_a_change_of_what_somebody_else_changed_is_refused(hub: MemoryHub, ana: dict[str, str]) -> None:
    made = hub.memory.remember("likes tea", scope=ana)
    hub.memory.update(made["id"], importance=0.9, version=1)

    with pytest.raises(errors.PreconditionFailed):
        hub.memory.update(made["id"], importance=0.1, version=1)
    with pytest.raises(errors.PreconditionFailed):
        hub.memory.forget(made["id"], version=1)


def test_forgetting_restoring_superseding_and_rating(hub: MemoryHub, ana: dict[str, str]) -> None:
    old = hub.memory.remember("lives in Rome", scope=ana, tags=["home"])
    hub.memory.forget(old["id"], version=1)
    with pytest.raises(errors.NotFound):
        hub.memory.get(old["id"])
    assert hub.memory.restore(old["id"])["state"] == "active"
    before_the_move = datetime.now(UTC).isoformat()
    new = hub.memory.supersede(old["id"], "lives in Oslo")
    assert hub.memory.rate(new["id"], helpful=True)["helpful_count"] == 1

    assert [memory["content"] for memory in hub.memory.search("lives", scope=ana)] == ["lives in Oslo"]
    then = hub.memory.search("lives", scope=ana, as_of=before_the_move)
    assert [memory["content"] for memory in then] == ["lives in Rome"]
    assert hub.memory.get(new["id"])["tags"] == ["home"]
    assert hub.memory.why_not("lives", old["id"], scope=ana)["step"] == "superseded"


def test_a_block_for_the_context_is_the_same_bytes_each_time(hub: MemoryHub, ana: dict[str, str]) -> None:
    made = hub.memory.remember("likes tea", scope=ana)

    by_id = hub.memory.render(ids=[made["id"]])

    assert f'id="{made["id"]}"' in by_id
    assert by_id == hub.memory.render(ids=[made["id"]]) == hub.memory.render("tea", scope=ana)


def test_lists_go_over_all_pages(hub: MemoryHub, ana: dict[str, str]) -> None:
    answers = hub.memory.remember_all([{"content": f"note {number}"} for number in range(450)], scope=ana)

    everything = [memory["content"] for memory in hub.memory.list_all(user=ana["user"], order="created")]

    assert sum(answer["created"] for answer in answers) == 450
    assert sorted(everything) == sorted(f"note {number}" for number in range(450))
    assert len(list(hub.memory.list_all(user=ana["user"], limit=230))) == 230


def test_the_python_that_a_memorys_page_shows_runs(
    hub: MemoryHub, hub_process: Hub, ana: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = hub.memory.remember("likes green tea in the morning", scope=ana, importance=0.8)
    scope = SimpleNamespace(as_dict=lambda: {**ana, "agent": None})
    memory: Any = SimpleNamespace(
        public_id=made["id"], version=1, importance=0.4, scope=scope, content="likes green tea in the morning"
    )
    request: Any = SimpleNamespace(build_absolute_uri=lambda path: f"{hub_process.base}{path}")
    monkeypatch.setenv("MEMORYHUB_KEY", hub_process.key)

    exec(memory_snippets.snippets_of(request, memory)[-1].code, {})

    assert hub.memory.get(made["id"])["importance"] == 0.4
