"""Import and export over HTTP."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memoryhub.flows import memory_uploads
from memoryhub.jobs.handlers import HANDLERS
from memoryhub.long_term_memory.models import Memory
from memoryhub.work.models import Job
from memoryhub.work.services import take_lease
from memoryhub.workspaces.principals import Binding

SEED = [
    {"memory_id": "mem_1", "content": "likes tea", "created_at": "2026-01-02T03:04:05Z", "tags": ["a"]},
    {"memory_id": "mem_2", "content": "深色主题", "importance": 0.9},
]
BODY = ("".join(json.dumps(item) + "\n" for item in SEED) + "{broken\n").encode()


def test_a_body_is_imported(api: Any) -> None:
    response = api.post("/memories/import?format=auto", BODY, content_type="application/x-ndjson")

    answer = response.json()
    assert response.status_code == 200
    assert (answer["format"], answer["created"], answer["deduplicated"], answer["conflicts"]) == ("seed", 2, 0, 0)
    assert [(item["line"], item["reason"][:11]) for item in answer["skipped"]] == [(3, "broken JSON")]
    assert answer["change_set"].startswith("chg_")
    assert Memory.objects.get(public_id="mem_1").created_at.isoformat() == "2026-01-02T03:04:05+00:00"


def test_a_form_is_imported_and_its_file_name_helps(api: Any) -> None:
    file = SimpleUploadedFile("MEMORY.md", b"# Prefs\n- dark mode\n- tabs\n")

    response = Client().post(
        "/api/v1/memories/import", {"file": file}, headers={"Authorization": f"Bearer {api.token}"}
    )

    assert (response.status_code, response.json()["format"], response.json()["created"]) == (200, "markdown", 2)


def test_a_dry_run_stores_nothing(api: Any) -> None:
    answer = api.post("/memories/import?dry_run=true", BODY).json()

    assert (answer["created"], answer["dry_run"], answer["change_set"]) == (2, True, None)
    assert Memory.objects.count() == 0


def test_a_large_file_becomes_a_job_with_the_same_result(
    api: Any, settings: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("memoryhub.api.memory_files.DIRECT_BYTES", 10)

    response = api.post("/memories/import", BODY)
    job = take_lease(job_id=Job.objects.get(public_id=response.json()["job"]["id"]).pk)
    assert job is not None
    result = HANDLERS[memory_uploads.JOB_KIND](job)

    assert response.status_code == 202
    assert (result["created"], result["skipped_count"]) == (2, 1)
    assert list((tmp_path / "imports").iterdir()) == []


def test_a_job_that_died_half_way_is_done_once(api: Any, settings: Any, tmp_path: Any, monkeypatch: Any) -> None:
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr("memoryhub.api.memory_files.DIRECT_BYTES", 10)
    monkeypatch.setattr("memoryhub.flows.reading_memories.CHUNK", 1)
    api.post("/memories/import", BODY)
    job = take_lease(job_id=Job.objects.get().pk)
    assert job is not None

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(memory_uploads, "report_progress", die)
        with pytest.raises(KeyboardInterrupt):
            memory_uploads.run_import_job(job)
    result = memory_uploads.run_import_job(job)

    assert (result["created"], result["deduplicated"]) == (1, 1)
    assert Memory.objects.count() == 2


@pytest.mark.parametrize(
    ("path", "body", "status", "slug"),
    [
        ("/memories/import", b"", 400, "empty-upload"),
        ("/memories/import?format=csv", BODY, 422, "unreadable-file"),
        ("/memories/import", b"\x89PNG\x00\xff", 422, "unreadable-file"),
        ("/memories/import?dry_run=perhaps", BODY, 422, "invalid"),
    ],
)
def test_what_can_not_be_imported_says_why(api: Any, path: str, body: bytes, status: int, slug: str) -> None:
    response = api.post(path, body)

    assert (response.status_code, response.json()["type"]) == (status, f"/problems/{slug}")


def test_export_streams_a_file_of_the_chosen_format(api: Any) -> None:
    api.post("/memories/import", BODY)

    response = api.get("/memories/export?format=seed&tag=a")
    text = b"".join(response.streaming_content).decode()

    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/x-ndjson")
    assert "memories-seed-" in response["Content-Disposition"]
    assert [json.loads(line)["memory_id"] for line in text.splitlines()] == ["mem_1"]


def test_a_stranger_exports_nothing_of_ours(api: Any, stranger_api: Any) -> None:
    api.post("/memories/import", BODY)

    assert b"".join(stranger_api.get("/memories/export").streaming_content) == b""


def test_a_bound_key_exports_its_own_scope(api: Any, api_with: Any) -> None:
    api.post("/memories/import", BODY)
    bound = api_with("memories:read", binding=Binding(user="u1"))

    assert b"".join(bound.get("/memories/export").streaming_content) == b""
    assert bound.get("/memories/export?user=u2").status_code == 403


def test_an_unknown_export_format_is_refused(api: Any) -> None:
    assert api.get("/memories/export?format=csv").status_code == 422


def test_a_reading_key_can_not_import(api_with: Any) -> None:
    assert api_with("memories:read").post("/memories/import", BODY).status_code == 403


def test_a_viewer_can_export_and_an_editor_can_import(viewer: Client, editor: Client) -> None:
    assert viewer.get("/api/v1/memories/export").status_code == 200
    assert viewer.post("/api/v1/memories/import", BODY, content_type="text/plain").status_code == 403
    assert editor.post("/api/v1/memories/import", BODY, content_type="text/plain").status_code == 200


@pytest.mark.parametrize("query", ["agent=%00", "tag=%00", "session=%00", "format=mem0&user=%00"])
def test_a_filter_that_no_database_can_hold_is_no_fault_of_the_hub(api: Any, query: str) -> None:
    """SQLite finds nothing, PostgreSQL refuses: both before the answer begins."""
    assert api.get(f"/memories/export?{query}").status_code in (200, 422)
