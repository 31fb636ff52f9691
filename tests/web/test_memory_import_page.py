"""Importing a file of memories on its page: preview, import, undo."""

import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memoryhub.audit.models import ChangeSet
from memoryhub.flows import preview_memories
from memoryhub.long_term_memory.models import Memory
from memoryhub.web import memory_import
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace
from tests.web.memory_cast import XSS, make_memory


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DATA_DIR", tmp_path)


def a_file(*contents: str, broken: str = "") -> SimpleUploadedFile:
    lines = [
        json.dumps(
            {"memory_id": f"mem_{index}", "content": content, "created_at": "2026-01-02T03:04:05Z", "tags": ["x"]}
        )
        for index, content in enumerate(contents)
    ]
    return SimpleUploadedFile("memories.jsonl", "\n".join([*lines, *([broken] if broken else [])]).encode())


def test_a_preview_stores_nothing_and_names_bad_lines(editor: Client, workspace: Workspace) -> None:
    make_memory(workspace, "known", agent="default")

    response = editor.post("/memories/import", {"file": a_file("new", "known", broken="{nonsense"), "format": "auto"})

    assert [kpi["value"] for kpi in response.context["kpis"]] == ["1", "1", "0", "1"]
    assert [item["line"] for item in response.context["skipped"]] == [3]
    assert Memory.objects.count() == 1


def test_the_import_keeps_ids_and_times_and_one_click_takes_it_back(editor: Client, workspace: Workspace) -> None:
    preview = editor.post("/memories/import", {"file": a_file("one", "two"), "format": "auto"}).context

    done = editor.post(
        "/memories/import/run",
        {"token": preview["token"], "name": "memories.jsonl", "format": preview["result"].format},
    )

    assert sorted(Memory.objects.values_list("public_id", flat=True)) == ["mem_0", "mem_1"]
    assert {at.year for at in Memory.objects.values_list("created_at", flat=True)} == {2026}
    change_set = ChangeSet.objects.get(action="import")
    assert change_set.public_id in done.content.decode()
    editor.post("/memories/undo", {"change_set": change_set.public_id})
    assert set(Memory.objects.values_list("state", flat=True)) == {"forgotten"}


def test_an_upload_belongs_to_who_brought_it_and_is_used_once(
    editor: Client, admin: Client, workspace: Workspace
) -> None:
    token = editor.post("/memories/import", {"file": a_file("one"), "format": "auto"}).context["token"]

    assert admin.post("/memories/import/run", {"token": token, "format": "seed"}).status_code == 404
    assert editor.post("/memories/import/run", {"token": "../../etc/passwd", "format": "seed"}).status_code == 404
    assert editor.post("/memories/import/run", {"token": token, "format": "seed"}).status_code == 200
    assert editor.post("/memories/import/run", {"token": token, "format": "seed"}).status_code == 404
    assert not list((settings.DATA_DIR / "uploads").iterdir())


def test_a_file_of_no_known_format_is_refused_beside_the_field(editor: Client, workspace: Workspace) -> None:
    response = editor.post("/memories/import", {"file": SimpleUploadedFile("x.bin", b"\x00\x01\x02"), "format": "auto"})

    assert response.status_code == 422
    assert response.context["form"].errors["file"]
    assert editor.post("/memories/import", {"format": "auto"}).status_code == 422


def test_a_large_file_is_looked_at_in_part_and_imported_by_a_job(
    editor: Client, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preview_memories, "PREVIEW_RECORDS", 2)
    monkeypatch.setattr(memory_import, "DIRECT_BYTES", 10)
    preview = editor.post("/memories/import", {"file": a_file("one", "two", "three"), "format": "auto"}).context

    response = editor.post(
        "/memories/import/run", {"token": preview["token"], "format": "seed", "name": "memories.jsonl"}
    )

    job = Job.objects.get(kind="import_memories")
    assert preview["result"].created == 2
    assert preview["goes_on"]
    assert response["Location"] == f"/jobs/{job.public_id}"


@pytest.mark.parametrize("attack", XSS[:2])
def test_names_and_reasons_are_data(editor: Client, workspace: Workspace, attack: str) -> None:
    upload = SimpleUploadedFile(
        f"{attack}.jsonl", json.dumps({"memory_id": attack, "content": ""}).encode() + b"\n" + attack.encode()
    )

    page = editor.post("/memories/import", {"file": upload, "format": "seed"}).content.decode()

    assert attack not in page


def test_viewers_may_not(viewer: Client, workspace: Workspace) -> None:
    assert viewer.get("/memories/import").status_code == 403
    assert viewer.post("/memories/import", {"file": a_file("one")}).status_code == 403
