"""What is too much for one request: a job with the change set from the start, its report, and the way back."""

import json
from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from memoryhub.audit.models import ChangeSet
from memoryhub.flows import memory_jobs
from memoryhub.jobs import tasks
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.services import bulk
from memoryhub.web import decay_policy, memory_bulk, undo
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from tests.factories import NOON
from tests.web.memory_cast import make_memories, make_memory
from tests.web.test_decay_page import POLICY


@pytest.fixture
def three_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (memory_bulk, "CHANGED_AT_ONCE"),
        (memory_bulk, "TRIED"),
        (undo, "TAKEN_BACK_AT_ONCE"),
        (decay_policy, "DRAWN_AT_ONCE"),
    ):
        monkeypatch.setattr(module, name, 2)


def job_of(answer: Any) -> Job:
    """The job whose page the answer leads to."""
    return Job.objects.get(public_id=answer["Location"].removeprefix("/jobs/"))


def done(job: Job) -> Job:
    tasks.run_now(job.pk)
    job.refresh_from_db()
    assert job.state == "done", job.error
    return job


def states() -> list[str]:
    return list(Memory.objects.order_by("id").values_list("state", flat=True))


def test_a_change_of_very_many_is_a_job_with_a_report_and_a_way_back(
    editor: Client, workspace: Workspace, three_are_many: None
) -> None:
    make_memories(workspace, ["a", "b", "c"], agent="ops")
    make_memory(workspace, "d", agent="ops", pinned=True)
    make_memory(workspace, "e", agent="writer")

    job = job_of(editor.post("/memories/bulk", {"agent": "ops", "action": "pin", "reason": "spring"}))

    assert not Memory.objects.filter(content="a", pinned=True).exists()
    result = done(job).result
    assert [result[name] for name in ("matched", "changed", "unchanged", "skipped")] == [4, 3, 1, 0]
    change_set = ChangeSet.objects.get(public_id=result["change_set"])
    assert (change_set.subject_count, change_set.reason, change_set.actor_kind) == (3, "spring", "user")
    assert f"/changes/{change_set.public_id}" in editor.get(f"/jobs/{job.public_id}").content.decode()

    back = done(job_of(editor.post(f"/changes/{change_set.public_id}/revert")))

    assert back.result["reverted"] == 3
    assert list(Memory.objects.filter(pinned=True).values_list("content", flat=True)) == ["d"]
    assert ChangeSet.objects.get(public_id=back.result["change_set"]).reverts == change_set


def test_a_job_that_died_half_way_goes_on_and_changes_nothing_twice(
    editor: Client, workspace: Workspace, three_are_many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_memories(workspace, ["a", "b", "c"], agent="ops")
    monkeypatch.setattr(bulk, "STEP", 1)
    job = job_of(editor.post("/memories/bulk", {"agent": "ops", "action": "archive"}))

    def die(*_: Any) -> None:
        raise SystemExit

    with monkeypatch.context() as once:
        once.setattr(memory_jobs, "report_progress", die)
        with pytest.raises(SystemExit):
            memory_jobs.run_bulk_job(job)
    half = states()
    result = done(job).result

    assert half == ["archived", "active", "active"]
    assert states() == ["archived"] * 3
    assert [result[name] for name in ("matched", "changed", "unchanged")] == [3, 3, 0]
    assert MemoryVersion.objects.filter(change_set__public_id=result["change_set"]).count() == 3


def test_what_moved_on_before_the_job_came_is_left_alone(
    editor: Client, workspace: Workspace, three_are_many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job lists its memories first; one of them goes to the trash before its turn comes."""
    rows = make_memories(workspace, ["a", "b", "c"], agent="ops")
    monkeypatch.setattr(bulk, "STEP", 1)
    job = job_of(editor.post("/memories/bulk", {"agent": "ops", "action": "pin"}))
    monkeypatch.setattr(
        memory_jobs, "report_progress", lambda *_: Memory.objects.filter(pk=rows[2].pk).update(state="forgotten")
    )

    result = memory_jobs.run_bulk_job(job)

    assert (result["matched"], result["changed"]) == (3, 2)
    assert Memory.objects.get(pk=rows[2].pk).pinned is False


def test_a_preview_of_very_many_stores_nothing_and_says_that_a_job_will_do_it(
    editor: Client, workspace: Workspace, three_are_many: None
) -> None:
    make_memories(workspace, ["a", "b", "c"], agent="ops")

    page = editor.get("/memories/bulk?agent=ops&action=pin")

    assert page.context["matched"] == 3
    assert "A job does it in the background" in page.content.decode()
    assert not ChangeSet.objects.filter(action="bulk").exists()


def test_what_makes_no_sense_leaves_no_job(editor: Client, workspace: Workspace, three_are_many: None) -> None:
    make_memories(workspace, ["a", "b", "c"])

    answer = editor.post("/memories/bulk", {"action": "importance", "value": "7"})

    assert (answer.status_code, Job.objects.count(), ChangeSet.objects.filter(action="bulk").count()) == (422, 0, 0)


def test_a_policy_is_in_force_at_once_and_a_job_draws_the_curves(
    editor: Client, workspace: Workspace, three_are_many: None
) -> None:
    make_memories(workspace, ["a", "b", "c"], agent="ops", importance=0.5)
    wanted = {**POLICY, "fade_threshold": "0.9"}

    preview = editor.post("/settings/decay/change", {**wanted, "action": "preview"}).content.decode()
    job = job_of(editor.post("/settings/decay/change", {**wanted, "action": "save"}))

    assert "3 of 3 memories change their state: Fading 3." in preview
    assert "Judged by 3 memories" in preview
    assert states() == ["active"] * 3
    result = done(job).result
    assert (states(), result["redrawn"], result["fading"]) == (["fading"] * 3, 3, 3)

    done(job_of(editor.post(f"/changes/{result['change_set']}/revert")))

    assert states() == ["active"] * 3


def test_a_filter_comes_back_from_a_jobs_arguments_as_it_was() -> None:
    wanted = MemoryFilter(
        scope=ScopeNames(agent="ops"), ids=["a"], tags=("x",), tags_any=("y",), tags_none=("z",), kinds=["semantic"],
        states=["active"], trusts=["trusted"], session="s", path_prefix="/", pinned=True, since=NOON, until=NOON,
        importance_gte=0.1, importance_lte=0.2, strength_lte=0.3, fades_before=NOON + timedelta(days=1), superseded=False,
        text="t", never_recalled_since=NOON, rated_harmful=True, met=[1],
    )  # fmt: skip
    assert all(getattr(wanted, one.name) != getattr(MemoryFilter(), one.name) for one in fields(wanted))

    back = memory_jobs.unpack_filter(json.loads(json.dumps(memory_jobs.pack_filter(wanted))))

    assert memory_jobs.pack_filter(back) == memory_jobs.pack_filter(wanted)
    assert back.met is None  # by then others may have the tags
    assert (back.scope, back.since, back.fades_before) == (wanted.scope, wanted.since, wanted.fades_before)
