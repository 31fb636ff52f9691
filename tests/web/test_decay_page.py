"""The decay policy's page: a dry run first, then one change set; and the guards."""

from typing import Any

import pytest
from django.test import Client

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import DecayRules, Memory
from memoryhub.long_term_memory.queries.guards import get_guard_settings
from memoryhub.long_term_memory.queries.policy import get_policy_book
from memoryhub.long_term_memory.services import MemoryDraft, Writer, remember
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Principal

POLICY: dict[str, Any] = {
    "curve": "seed",
    "factor": "0.95",
    "half_life_days": "30",
    "floor": "0.05",
    "fade_threshold": "0.3",
    "archive_threshold": "0.1",
    "forget_after_days": "180",
    "access_window_seconds": "3600",
    "protected_tags": "protected",
    "by_tag": "",
}


@pytest.fixture
def memory(owner: Principal) -> Memory:
    remember(
        writer=Writer.of(owner, door="test"),
        drafts=[MemoryDraft(content="Deploys go out on Tuesdays.", scope=ScopeNames(agent="ops"), importance=0.5)],
    )
    return Memory.objects.get()


def test_a_dry_run_counts_and_stores_nothing(editor: Client, workspace: Workspace, memory: Memory) -> None:
    page = editor.post(
        "/settings/decay/change", {**POLICY, "fade_threshold": "0.9", "action": "preview"}
    ).content.decode()

    assert "1 of 1 memories changes its state: Fading 1." in page
    assert memory.public_id in page
    assert not DecayRules.objects.exists()
    memory.refresh_from_db()
    assert memory.state == "active"


def test_putting_it_in_force_is_one_change_set(editor: Client, workspace: Workspace, memory: Memory) -> None:
    answer = editor.post("/settings/decay/change", {**POLICY, "fade_threshold": "0.9", "action": "save"})

    memory.refresh_from_db()
    assert memory.state == "fading"
    assert answer["Location"] == f"/changes/{ChangeSet.objects.latest('id').public_id}"


def test_exceptions_by_kind_and_tag_are_kept_and_shown_again(editor: Client, workspace: Workspace) -> None:
    exceptions = {"episodic_factor": "0.9", "by_tag": "decisions factor=0.99 floor=0.2", "protected_tags": "law， core"}

    editor.post("/settings/decay/change", {**POLICY, **exceptions, "action": "save"})

    book = get_policy_book(workspace)
    assert book.by_kind == {"episodic": {"factor": 0.9}}
    assert book.by_tag == {"decisions": {"factor": 0.99, "floor": 0.2}}
    assert book.base.protected_tags == {"law", "core"}
    assert "decisions factor=0.99 floor=0.2" in editor.get("/settings/decay").content.decode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"factor": "1"},
        {"factor": "nan"},
        {"archive_threshold": "0.5"},
        {"by_tag": "no numbers here"},
        {"by_tag": "tag speed=3"},
        {"by_tag": "tag factor=x"},
        {"half_life_days": "0", "curve": "half_life"},
        {"curve": "magic"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(editor: Client, workspace: Workspace, wrong: dict[str, str]) -> None:
    answer = editor.post("/settings/decay/change", {**POLICY, **wrong, "action": "save"})

    assert answer.status_code == 422
    assert not DecayRules.objects.exists()


def test_a_viewer_sees_the_policy_and_no_button(viewer: Client, workspace: Workspace) -> None:
    page = viewer.get("/settings/decay").content.decode()

    assert "Put in force" not in page
    assert viewer.post("/settings/decay/change", {**POLICY, "action": "save"}).status_code == 403


def test_guards_are_changed_by_admins_only(admin: Client, editor: Client, workspace: Workspace) -> None:
    wanted = {"redact_secrets": "on", "max_writes_per_minute": "60", "extracted_memories": "unreviewed"}

    assert editor.post("/settings/guards/change", wanted).status_code == 403
    admin.post("/settings/guards/change", wanted)

    workspace.refresh_from_db()
    guards = get_guard_settings(workspace)
    assert (guards.redact_secrets, guards.quarantine_instructions) == (True, False)
    assert (guards.max_writes_per_minute, guards.extracted_memories) == (60, "unreviewed")
