"""The search bench: ranked results with the parts of their scores, why one is missing, weights to try and to save."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client

from memoryhub.common import clock
from memoryhub.long_term_memory.models import Memory, RecallReceipt
from memoryhub.long_term_memory.services import edit_memory, forget_memory, rate_memory
from memoryhub.long_term_memory.services.writer import MemoryChanges
from memoryhub.workspaces.models import Workspace
from tests.factories import NOON
from tests.web.memory_cast import agent_of, make_memory

HTMX = {"HX-Request": "true"}


def texts(response: Any) -> list[str]:
    return [hit.row.excerpt for hit in response.context["hits"]]


def test_results_are_ranked_and_each_score_is_the_sum_of_its_parts(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "The staging database is restored every Sunday.")
    make_memory(
        workspace,
        "The database of staging and the database of production are on the same host as the database of tests.",
    )
    make_memory(workspace, "Likes tabs.")

    hits = viewer.get("/search?q=staging+database").context["hits"]

    assert [hit.rank for hit in hits] == [1, 2]
    for hit in hits:
        assert hit.score == pytest.approx(sum(part.adds for part in hit.bar.segments), abs=1e-6)
        assert hit.bar.factor == 1
        assert float(hit.bar.segments[-1].x) + float(hit.bar.segments[-1].width) <= 200.01


def test_what_ratings_did_to_a_score_is_a_line_of_its_own(viewer: Client, workspace: Workspace) -> None:
    liked, harmful = make_memory(workspace, "Deploys on Tuesdays."), make_memory(workspace, "Deploys on Fridays.")
    for memory, helpful in ((liked, True), (harmful, False)):
        rate_memory(writer=agent_of(workspace), memory_id=memory.public_id, helpful=helpful)

    hits = viewer.get("/search?q=deploys").context["hits"]

    assert [hit.row.id for hit in hits] == [liked.public_id, harmful.public_id]
    for hit in hits:
        assert hit.score == pytest.approx(sum(part.adds for part in hit.bar.segments) + hit.bar.adjusts, abs=1e-6)
    assert hits[0].bar.factor > hits[1].bar.factor


def test_the_scope_is_never_left(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "Deploys on Tuesdays.", agent="ops")
    make_memory(workspace, "Deploys never.", agent="writer")

    assert texts(viewer.get("/search?q=deploys&agent=ops")) == ["Deploys on Tuesdays."]
    assert texts(viewer.get("/search?q=deploys&agent=nobody")) == []


def test_searching_is_reading(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "Deploys on Tuesdays.")

    viewer.get("/search?q=deploys")

    assert not RecallReceipt.objects.exists()
    assert Memory.objects.get().access_count == 0


def test_weights_change_the_order(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "Deploys go out on Tuesdays; deploys are short.", importance=0.1)
    make_memory(
        workspace, "Something about deploys, tests, databases, reviews and the weather of last week.", importance=1.0
    )

    relevance = texts(viewer.get("/search?q=deploys&w_relevance=1&w_recency=0&w_importance=0&w_access=0"))
    importance = texts(viewer.get("/search?q=deploys&w_relevance=0&w_recency=0&w_importance=1&w_access=0"))

    assert relevance[0].startswith("Deploys go out")
    assert importance[0].startswith("Something about")


@pytest.mark.parametrize(
    ("change", "query", "step"),
    [
        ("forget", "", "state"),
        ("archive", "", "state"),
        ("", "&agent=writer", "scope"),
        ("", "&tag=none-such", "filter"),
        ("", "", "returned"),
        ("supersede", "", "superseded"),
    ],
)
def test_why_not_names_the_step(viewer: Client, workspace: Workspace, change: str, query: str, step: str) -> None:
    memory = make_memory(workspace, "Deploys on Tuesdays.", agent="ops")
    if change == "forget":
        forget_memory(writer=agent_of(workspace), memory_id=memory.public_id)
    elif change == "archive":
        edit_memory(writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(archived=True))
    elif change == "supersede":
        make_memory(workspace, "Deploys on Mondays.", agent="ops", supersedes=memory.public_id)

    why = viewer.get(f"/search?q=deploys{query}&why={memory.public_id}").context["why"]

    assert why["step"] == step
    assert str(why["words"]) != step


def test_a_memory_that_fits_nothing_is_explained(viewer: Client, workspace: Workspace) -> None:
    memory = make_memory(workspace, "Likes tabs.")

    assert viewer.get(f"/search?q=deploys&why={memory.public_id}").context["why"]["step"] == "candidates"


@pytest.mark.parametrize("why", ["mem_unknown", "x" * 400, "\0"])
def test_an_unknown_id_is_said_plainly(viewer: Client, workspace: Workspace, why: str) -> None:
    response = viewer.get("/search", {"q": "deploys", "why": why})

    assert response.status_code == 200
    assert response.context.get("why") is None


@pytest.mark.parametrize("weight", ["nan", "inf", "-1", "x", "1e9"])
def test_weights_that_make_no_sense_are_left_alone(viewer: Client, workspace: Workspace, weight: str) -> None:
    make_memory(workspace, "Deploys on Tuesdays.")

    response = viewer.get(f"/search?q=deploys&w_relevance={weight}")

    assert not response.context["bench"].own_weights
    assert len(response.context["hits"]) == 1


def test_a_part_is_answered_with_the_address_to_keep(viewer: Client, workspace: Workspace) -> None:
    make_memory(workspace, "Deploys on Tuesdays.")

    response = viewer.get("/search?q=deploys&agent=&limit=10&w_relevance=0.9&w_recency=0.5", headers=HTMX)

    assert response["HX-Push-Url"] == "/search?q=deploys&w_recency=0.5"
    assert "<html" not in response.content.decode()


def test_saved_weights_are_the_default_of_every_recall(editor: Client, viewer: Client, workspace: Workspace) -> None:
    weights = {"w_relevance": "0.5", "w_recency": "0.5", "w_importance": "0", "w_access": "0"}

    assert viewer.post("/search/weights", weights).status_code == 403
    editor.post("/search/weights", {**weights, "q": "deploys"})

    workspace.refresh_from_db()
    assert workspace.settings["recall_weights"] == {"relevance": 0.5, "recency": 0.5, "importance": 0.0, "access": 0.0}
    assert viewer.get("/search?q=deploys").context["bench"].weights.recency == 0.5


def test_viewers_get_no_button_to_save(viewer: Client, editor: Client, workspace: Workspace) -> None:
    assert "/search/weights" not in viewer.get("/search").content.decode()
    assert "/search/weights" in editor.get("/search").content.decode()


def test_the_bench_looks_back_in_the_viewers_zone(viewer: Client, workspace: Workspace) -> None:
    with clock.frozen(NOON):
        memory = make_memory(workspace, "Deploys on Tuesdays.")
    with clock.frozen(NOON + timedelta(hours=3)):
        edit_memory(
            writer=agent_of(workspace), memory_id=memory.public_id, changes=MemoryChanges(content="Deploys on Fridays.")
        )
    viewer.cookies["memoryhub_zone"] = "Asia/Shanghai"
    then = (NOON + timedelta(hours=1)).astimezone(ZoneInfo("Asia/Shanghai")).strftime("%Y-%m-%dT%H:%M")

    page = viewer.get(f"/search?q=deploys&as_of={then}")
    before = (NOON - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")

    assert texts(page) == ["Deploys on Tuesdays."]
    assert f'value="{then}"' in page.content.decode()
    assert texts(viewer.get("/search?q=deploys")) == ["Deploys on Fridays."]
    assert texts(viewer.get(f"/search?q=deploys&as_of={before}")) == []


@pytest.mark.parametrize("text", ["yesterday", "0001-01-01T00:00", "9999-12-31T23:59", "2026-11-29T10:00+02:00", "\0"])
def test_a_moment_that_is_none_asks_for_now(viewer: Client, workspace: Workspace, text: str) -> None:
    make_memory(workspace, "Deploys on Tuesdays.")

    assert texts(viewer.get("/search", {"q": "deploys", "as_of": text})) == ["Deploys on Tuesdays."]
