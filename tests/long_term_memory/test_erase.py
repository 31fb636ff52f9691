"""Erase really erases: no file of the hub's data folder holds a word of it afterwards."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memoryhub.jobs.tasks import run_now
from memoryhub.long_term_memory.models import Memory, RecallReceipt
from memoryhub.work.models import Job
from tests.api.test_memories import ids, keep
from tests.conftest import ApiClient
from tests.live import ROOT, clean_environment

SECRET = "zebra-moonlight-quartz"
SCRIPT = f"""
import django, sys
django.setup()
from django.core.management import call_command
from django.db import connection
call_command("migrate", verbosity=0)
from memoryhub.flows.erase import erase_memory, erase_scope
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import (
    MemoryChanges, MemoryDraft, ScopeNames, Writer, edit_memory, forget_memory, offer_candidates, recall_memories, remember,
)
from memoryhub.session_cache.services.events import GivenEvent, append_events
from memoryhub.workspaces.services import ensure_session
from memoryhub.workspaces.principals import command_principal
from memoryhub.workspaces.services import create_workspace
principal = command_principal(create_workspace(name="w"), "test")
writer = Writer.of(principal, door="test")
keep = lambda text: remember(writer=writer, drafts=[MemoryDraft(content=text, scope=ScopeNames(user="ana"))])[0].id
for number in range(50):
    keep(f"an ordinary note {{number}}")
writer = Writer.of(principal, door="test", reason="because of {SECRET}")
gone = keep("first {SECRET} " * 50)
edit_memory(writer=writer, memory_id=gone, changes=MemoryChanges(content="second {SECRET} " * 400))
edit_memory(writer=writer, memory_id=gone, changes=MemoryChanges(content="third {SECRET}", subject="{SECRET}"))
recall_memories(writer=writer, request=SearchRequest(query="{SECRET}"))
forget_memory(writer=writer, memory_id=gone)
if "person" in sys.argv:
    session = ensure_session(workspace=principal.workspace, sid="s1", user="ana", title="{SECRET}")
    append_events(session=session, events=[GivenEvent(kind="message", content="said {SECRET}")])
    offer_candidates(writer=writer, candidates=[{{"content": "a candidate {SECRET}", "scope": {{"user": "ana"}}}}])
if "erase" in sys.argv:
    if "person" in sys.argv:
        erase_scope(writer=writer, scope=ScopeNames(user="ana"))
    else:
        erase_memory(writer=writer, memory_id=gone)
connection.close()
"""


def files_with_the_secret(folder: Path, *arguments: str) -> list[str]:
    environment = clean_environment(MEMORYHUB_DATA_DIR=str(folder), DJANGO_SETTINGS_MODULE="memoryhub.settings")
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, "-c", SCRIPT, *arguments], env=environment, cwd=ROOT, check=True, timeout=300)
    words = (SECRET.encode(), b"moonlight")
    return [str(path) for path in folder.rglob("*") if path.is_file() and any(w in path.read_bytes() for w in words)]


@pytest.mark.slow
def test_the_raw_files_hold_it_before_and_nothing_of_it_after(tmp_path: Path) -> None:
    before, after, person = (tmp_path / name for name in ("before", "after", "person"))
    for folder in (before, after, person):
        folder.mkdir()

    assert files_with_the_secret(before, "person") != []
    assert files_with_the_secret(after, "erase") == []
    assert files_with_the_secret(person, "person", "erase") == []


def test_erasing_a_user_takes_exactly_theirs(api: ApiClient) -> None:
    keep(api, "of ana", scope={"user": "ana", "agent": "coder"})
    kept = keep(api, "of ben", scope={"user": "ben"})["id"]
    api.post("/memories/search", {"query": "of", "scope": {"user": "ana"}})
    api.post("/memories/search", {"query": "of", "scope": {"user": "ben"}})

    answer = api.post("/memories/erase", {"scope": {"user": "ana"}})
    job = Job.objects.get(kind="erase")
    run_now(job.pk)
    run_now(job.pk)

    assert answer.status_code == 202
    assert api.get(f"/jobs/{answer.json()['job']['id']}").json()["result"]["memories"] == 1
    assert ids(api.get("/memories")) == [kept]
    assert [receipt.scope for receipt in RecallReceipt.objects.all()] == [{"user": "ben"}]
    assert Memory.objects.count() == 1


def test_erasing_nobody_in_particular_is_refused(api: ApiClient) -> None:
    assert api.post("/memories/erase", {"scope": {}}).status_code == 400
