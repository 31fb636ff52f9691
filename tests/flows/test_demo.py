"""The demo: loaded through the services, loaded anew, and taken away with every row."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from memoryhub.audit.models import ChangeSet
from memoryhub.common import clock
from memoryhub.flows.demo.content import BadStory, read_memories
from memoryhub.flows.demo.load import DEMO, NotTheDemo, find_demo, load_demo, remove_demo
from memoryhub.flows.demo.removal import remove_workspace, workspace_paths
from memoryhub.long_term_memory.models import EmbeddingModel, Memory, RecallReceipt, ReviewItem
from memoryhub.long_term_memory.search.documents import workspace_token
from memoryhub.prompt_cache.models import Diagnosis, UsageRecord
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.session_cache.models import Branch, ToolResult, ToolUsage
from memoryhub.work.models import Job, JobState
from memoryhub.workspaces.models import Membership, Session, User, Workspace
from tests.factories import make_user, make_workspace


@dataclass(frozen=True)
class Loaded:
    """The demo, and how many rows every table had before it was loaded."""

    workspace: Workspace
    admin: User
    before: dict[str, int]


@pytest.fixture(scope="module")
def loaded(django_db_setup: None, django_db_blocker: Any) -> Iterator[Loaded]:
    """Load the demo once for all tests that only look at it; it is taken away by its own removal."""
    with django_db_blocker.unblock():
        home = make_workspace("home-of-the-demo")
        admin = make_user("admin", workspace=home, role="admin")
        make_user("viewer", workspace=home, role="viewer")
        before = rows_of_all_tables()
        try:
            yield Loaded(load_demo().workspace, admin, before)
        finally:
            demo = find_demo()
            if demo is not None:
                remove_demo(workspace=demo)
            remove_workspace(home)
        User.objects.filter(username__endswith="-of-home-of-the-demo").delete()


@pytest.fixture
def demo(loaded: Loaded, db: None) -> Workspace:
    return loaded.workspace


def rows_of_all_tables() -> dict[str, int]:
    """Count every table; names of embedding models belong to the hub, whoever was embedded."""
    return {m._meta.label: m._base_manager.count() for m in apps.get_models() if m is not EmbeddingModel}


def indexed_texts(workspace: Workspace) -> int:
    """Count what the full-text index lists under a workspace."""
    token = workspace_token(workspace.pk)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT rowid FROM long_term_memory_terms WHERE long_term_memory_terms MATCH %s", [f'"{token:x}"']
            )
        else:
            cursor.execute("SELECT key FROM long_term_memory_terms WHERE tokens @> ARRAY[%s]::bigint[]", [token])
        return len(cursor.fetchall())


def test_every_room_has_something_to_show(demo: Workspace) -> None:
    states = set(Memory.objects.filter(workspace=demo).values_list("state", flat=True))
    kinds = set(ReviewItem.objects.filter(workspace=demo, state="open").values_list("kind", flat=True))
    causes = set(Diagnosis.objects.filter(workspace=demo).values_list("cause", flat=True))
    jobs = set(Job.objects.filter(workspace=demo).values_list("state", flat=True))

    assert Memory.objects.filter(workspace=demo).count() >= 280
    assert states == {"active", "fading", "archived", "forgotten"}
    assert kinds == {"duplicate", "contradiction", "quarantined", "extracted", "fading"}
    assert {"ttl_expired", "tools_changed", "system_changed", "model_changed", "concurrent_start"} <= causes
    assert {JobState.DONE, JobState.DEAD} <= jobs
    assert RecallReceipt.objects.filter(workspace=demo, result_count__gt=0).count() > 50
    assert ToolResult.objects.filter(workspace=demo).exists()


def test_tools_were_missed_for_every_reason_and_hit(demo: Workspace) -> None:
    reasons = ("absent", "expired", "stale", "invalidated", "evicted", "uncacheable")
    rows = ToolUsage.objects.filter(workspace=demo)

    assert sum(row.hits for row in rows) > sum(row.misses for row in rows) / 2
    assert {reason for reason in reasons if any(getattr(row, f"missed_{reason}") for row in rows)} >= set(reasons) - {
        "evicted"
    }


def test_usage_is_priced_except_for_the_model_on_trial(demo: Workspace) -> None:
    records = UsageRecord.objects.filter(workspace=demo)

    assert set(records.unpriced().values_list("model", flat=True)) == {"claude-mythos-5-2"}
    assert not records.excluded().exists()
    assert check_rollups(workspace=demo) == []


def test_it_ends_now_and_began_two_weeks_ago(demo: Workspace) -> None:
    now = clock.now()
    times = list(
        UsageRecord.objects.filter(workspace=demo).order_by("occurred_at").values_list("occurred_at", flat=True)
    )

    assert times[-1] <= now
    assert now - timedelta(days=15) < times[0] < now - timedelta(days=12)
    assert not Memory.objects.filter(workspace=demo, created_at__gt=now).exists()
    assert not ChangeSet.objects.filter(workspace=demo, created_at__gt=now).exists()


def test_a_session_was_rewound_and_another_forked(demo: Workspace) -> None:
    rewound = Session.objects.get(workspace=demo, sid="review-4821-basket")
    forked = Session.objects.get(workspace=demo, sid="handbook-returns-short")

    assert Branch.objects.filter(session=rewound).count() == 2
    assert forked.tree.origin_seq > 0
    assert Memory.objects.filter(session=rewound).exclude(event_id="").count() == 2


def test_every_admin_of_the_hub_enters_it_and_nobody_else(demo: Workspace, loaded: Loaded) -> None:
    members = Membership.objects.filter(workspace=demo)

    assert [(row.user, row.role) for row in members] == [(loaded.admin, "admin")]
    assert members.get().entered_at is not None


def test_loaded_again_it_is_made_anew_and_removed_it_leaves_no_row_in_any_table(
    demo: Workspace, loaded: Loaded
) -> None:
    first = rows_of_all_tables()
    assert indexed_texts(demo) > 280

    again = load_demo().workspace

    assert (again.pk != demo.pk, Workspace.objects.filter(name=DEMO).count()) == (True, 1)
    assert indexed_texts(demo) == 0
    second = rows_of_all_tables()
    assert {name: count for name, count in second.items() if abs(count - first[name]) > max(3, first[name] // 20)} == {}

    removed = remove_demo(workspace=again)

    assert rows_of_all_tables() == loaded.before
    assert indexed_texts(again) == 0
    assert removed > 5_000


def test_a_workspace_of_that_name_that_somebody_made_is_left_alone(demo: Workspace) -> None:
    Workspace.objects.filter(pk=demo.pk).update(name="another")
    theirs = make_workspace(DEMO)

    with pytest.raises(NotTheDemo):
        load_demo()

    assert find_demo() is None
    with pytest.raises(NotTheDemo):
        remove_demo(workspace=theirs)
    assert Workspace.objects.filter(pk=theirs.pk).exists()


def test_the_rest_of_the_hub_keeps_its_time_while_the_demo_is_played(db: None) -> None:
    """Past moments are replayed in one thread only; leases and heartbeats of the others go on."""
    seen = []
    with clock.replaying(clock.now() - timedelta(days=9)):
        thread = threading.Thread(target=lambda: seen.append(clock.now()))
        thread.start()
        thread.join()
        assert clock.now() < seen[0] - timedelta(days=8)


def test_every_table_of_a_workspace_is_found_by_its_foreign_keys() -> None:
    known = {model._meta.label for model in workspace_paths()}

    assert {"session_cache.SessionEvent", "long_term_memory.RecalledMemory", "prompt_cache.DailyUsage"} <= known
    assert "workspaces.User" not in known


def test_a_line_of_the_story_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("## ops / - / infra / semantic\n- important | tag | text\n")

    with pytest.raises(BadStory, match=r"x\.md:2"):
        read_memories(tmp_path)
