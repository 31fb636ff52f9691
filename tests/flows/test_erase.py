"""An erase takes a person's words out of every table and folder, and leaves everybody else's."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from memoryhub.audit.models import IdempotentReply
from memoryhub.audit.services import record_event
from memoryhub.common import clock
from memoryhub.flows.erase import erase_memory, erase_scope
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryStore, ReviewItem, Tag
from memoryhub.long_term_memory.services import Writer, offer_candidates
from memoryhub.prompt_cache.models import Diagnosis, RequestFingerprint, UsageRecord
from memoryhub.session_cache.models import Blob, SessionEvent, ToolResult
from memoryhub.work.models import Job, JobState
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.principals import Principal
from tests.conftest import ApiClient

MARK = "zebra-moonlight-quartz"
ANA, BEN = {"user": "ana"}, {"user": "ben"}


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(owner, door="test", reason=f"because of {MARK}")


def rows_with(word: str) -> dict[str, int]:
    """How many rows of each table hold a word, in any column, as the database would print them."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        table = connection.ops.quote_name(model._meta.db_table)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            count = sum(any(word in _text(value) for value in row) for row in cursor.fetchall())
        if count:
            found[model.__name__] = count
    return found


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def tell(api: ApiClient, who: dict[str, str], text: str) -> str:
    """A person's words in every place that takes any; returns the memory's id."""
    name = who["user"]
    sid = f"session-of-{name}"
    api.put(f"/sessions/{sid}", {"agent": "coder", "user": name, "title": text, "metadata": {"note": text}})
    api.post(f"/sessions/{sid}/events", [{"id": "e1", "kind": "message", "role": "user", "content": text}])
    api.put("/tool-policies/read", {"cacheable": True, "ttl_seconds": 600})
    answer = api.put(f"/sessions/{sid}/tool-results", {"tool": "read", "params": {"of": text}, "value": text})
    assert answer.status_code == 201, answer.content
    body = {"content": f"first {text}", "scope": who, "session": sid, "event": "e1", "subject": text, "tags": [text]}
    made = api.post("/memories", body, Idempotency_Key=f"key-{name}").json()["items"][0]["id"]
    api.patch(f"/memories/{made}", {"content": f"second {text}", "reason": text}, If_Match='"v1"')
    api.post("/memories/search", {"query": text, "scope": who, "session": sid})
    api.post("/memories/search", {"query": f"{text} without a scope", "session": sid})
    block = api.post("/memories/render", {"ids": [made]}).json()["text"]
    filler = "Rules of the house, which every answer keeps to. " * 300
    request = {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": filler + block, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": text}],
    }
    usage = {"input_tokens": 9, "output_tokens": 5, "cache_creation_input_tokens": 8_000, "cache_read_input_tokens": 0}
    report = {"model": "claude-opus-5-5", "session": sid, "user": name, "usage": usage, "request": request}
    for number in (1, 2):
        request["system"][0]["text"] += str(number)  # type: ignore[index]
        answer = api.post("/prompt-cache/usage", {**report, "message_id": f"msg-{name}-{number}"})
        assert answer.status_code == 201, answer.content
    return str(made)


@pytest.fixture
def uploads(settings: Any, tmp_path: Path, workspace: Workspace) -> list[Path]:
    settings.DATA_DIR = tmp_path
    for folder in ("imports", "uploads"):
        (tmp_path / folder).mkdir()
    left = [tmp_path / "imports" / "old.import", tmp_path / "uploads" / f"{workspace.pk}-1-token"]
    for path in left:
        path.write_text(MARK)
    return left


@pytest.fixture
def traces(api: ApiClient, writer: Writer, workspace: Workspace) -> tuple[str, str]:
    """Ana's memory with all her traces, and Ben's."""
    api.put("/prompt-cache/excerpts", {"keep": True})
    ana, ben = tell(api, ANA, MARK), tell(api, BEN, "ordinary words")
    Diagnosis.objects.update(before=MARK, after=MARK)
    candidate = {"content": f"she said {MARK}", "scope": ANA, "session": "session-of-ana"}
    offer_candidates(writer=writer, candidates=[candidate, {"content": "ben's", "scope": BEN}])
    record_event(
        workspace=workspace, actor=writer.actor, action="noted", subject_type="memory", subject_id=ana,
        detail={"said": MARK},
    )  # fmt: skip
    job = enqueue_job(workspace=workspace, kind="extract", args={"extract": {"sid": "s"}, "note": MARK})
    Job.objects.filter(pk=job.pk).update(state=JobState.DONE, result={"candidates": [candidate]}, error=MARK)
    return ana, ben


def test_everything_of_a_person_goes_and_nothing_of_anybody_else(
    api: ApiClient, writer: Writer, traces: tuple[str, str], uploads: list[Path]
) -> None:
    before = rows_with(MARK)

    done = erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    assert set(before) >= {
        "Memory", "MemoryVersion", "RecallReceipt", "Tag", "ReviewItem", "AuditEvent", "ChangeSet", "Job", "Session",
        "ToolResult", "Diagnosis",
    }  # fmt: skip
    assert rows_with(MARK) == {}
    assert (done.memories, done.versions, done.receipts, done.sessions, done.sessions_kept) == (1, 2, 2, 1, [])
    assert Memory.objects.get().public_id == traces[1]
    assert [session.sid for session in Session.objects.all()] == ["session-of-ben"]
    assert {event.session.sid for event in SessionEvent.objects.select_related("session")} == {"session-of-ben"}
    assert (Blob.objects.count(), ToolResult.objects.count()) == (1, 1)
    assert set(Tag.objects.values_list("name", flat=True)) == {"ordinary words"}
    assert [item.candidate["content"] for item in ReviewItem.objects.filter(kind="extracted")] == ["ben's"]
    assert not RequestFingerprint.objects.filter(kept_body__isnull=False).exists()
    assert UsageRecord.objects.count() == 4  # the numbers stay
    assert not any(path.exists() for path in uploads)


def test_running_it_again_finds_nothing(writer: Writer, traces: tuple[str, str]) -> None:
    erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    again = erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    assert (again.memories, again.versions, again.receipts, again.sessions) == (0, 0, 0, 0)


def test_one_memory_goes_from_every_place_that_quotes_memories(
    api: ApiClient, writer: Writer, traces: tuple[str, str], uploads: list[Path]
) -> None:
    ReviewItem.objects.all().delete()
    offer_candidates(writer=writer, candidates=[{"content": f"second {MARK}", "scope": BEN}])

    erase_memory(writer=writer, memory_id=traces[0])

    # What she said in her session is not the memory: it goes with her, by a scope.
    assert set(rows_with(MARK)) <= {"Session", "SessionEvent", "Blob", "ToolResult", "RecallReceipt"}
    assert not IdempotentReply.objects.exists()
    assert not RequestFingerprint.objects.filter(kept_body__isnull=False).exists()
    assert not ReviewItem.objects.exists()
    assert not any(path.exists() for path in uploads)


def test_a_session_that_somebody_forked_stays_and_is_named(api: ApiClient, writer: Writer) -> None:
    tell(api, ANA, MARK)
    api.put("/sessions/of-ben", {"user": "ben"})
    forked = api.post("/sessions/session-of-ana/fork", {"at": "e1", "session": "bens-fork"})
    assert forked.status_code == 201, forked.content
    Session.objects.filter(sid="bens-fork").update(user="ben")

    done = erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    assert (done.sessions, done.sessions_kept) == (0, ["session-of-ana"])


def test_a_fork_of_the_same_person_goes_with_its_trunk(api: ApiClient, writer: Writer) -> None:
    tell(api, ANA, MARK)
    api.post("/sessions/session-of-ana/fork", {"at": "e1", "session": "anas-fork"})
    Session.objects.filter(sid="anas-fork").update(user="ana")

    done = erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    assert (done.sessions, done.sessions_kept) == (2, [])
    assert not Blob.objects.exists()


def test_a_project_goes_with_its_store_and_an_agent_with_its_name(writer: Writer, workspace: Workspace) -> None:
    now = clock.now()
    MemoryStore.objects.create(
        workspace=workspace, public_id="memstore_1", name="notes", project="notes", description=MARK,
        created_at=now, updated_at=now,
    )  # fmt: skip

    erase_scope(writer=writer, scope=ScopeNames(project="notes"))

    assert not MemoryStore.objects.exists()


def test_another_workspace_keeps_its_own(
    api: ApiClient, stranger_api: ApiClient, writer: Writer, other_workspace: Workspace
) -> None:
    tell(api, ANA, MARK)
    theirs = tell(stranger_api, ANA, "a stranger's words")

    erase_scope(writer=writer, scope=ScopeNames(user="ana"))

    assert Memory.objects.get().public_id == theirs
    assert RequestFingerprint.objects.filter(kept_body__isnull=False).exists()
    assert json.dumps(rows_with(MARK)) == "{}"
