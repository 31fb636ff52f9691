"""POST /prompt-cache/import: uploads, and folders that the hub may read."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memoryhub.flows import transcript_jobs
from memoryhub.jobs.tasks import run_now
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.work.models import Job
from tests.conftest import ApiClient
from tests.flows.transcript_makers import answer, as_bytes, usage_of, write_file

IMPORT = "/prompt-cache/import"


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()


def body_of(*message_ids: str, session: str = "s1") -> bytes:
    return b"\n".join(as_bytes(answer(one, usage_of(1_000_000), sessionId=session)) for one in message_ids) + b"\n"


def upload(api: ApiClient, *files: tuple[str, bytes]) -> Any:
    return Client().post(
        f"/api/v1{IMPORT}",
        {"file": [SimpleUploadedFile(name, body) for name, body in files]},
        headers={"Authorization": f"Bearer {api.token}"},
    )


def left_behind() -> list[Path]:
    return list((Path(settings.DATA_DIR) / "transcript-uploads").glob("*"))


def test_files_are_imported_and_the_job_says_what_happened(api: ApiClient) -> None:
    response = upload(api, ("s1.jsonl", body_of("m1") + b"{broken\n"), ("s2.jsonl", body_of("m1", "m2", session="s2")))

    assert response.status_code == 202
    job = api.get(f"/jobs/{response.json()['job']['id']}").json()
    assert (job["state"], job["result"]["records"]["created"]) == ("done", 2)
    assert job["result"]["errors"] == [
        {"file": "s1.jsonl", "line": 2, "reason": job["result"]["errors"][0]["reason"]},
    ]
    assert api.get("/prompt-cache/report").json()["totals"]["cost_usd"] == "8.000000"
    assert left_behind() == []


def test_a_body_that_is_the_file_itself(api: ApiClient) -> None:
    response = api.post(IMPORT, body_of("m1"), content_type="application/x-ndjson")

    assert response.status_code == 202
    assert UsageRecord.objects.count() == 1


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "a/b/c.jsonl", "..", "", "x" * 400, "名.jsonl", "a\\b.jsonl", "a\0b"]
)
def test_names_cannot_leave_the_upload(api: ApiClient, name: str) -> None:
    folder = transcript_jobs.UploadFolder()

    folder.add(name, [body_of("m1")])
    folder.add(name, [body_of("m2")])

    stored = [path for path in folder.folder.rglob("*") if path.is_file()]
    assert len(stored) == 2
    assert all(path.resolve().is_relative_to(folder.folder) for path in stored)


def test_a_large_upload_is_left_to_the_worker(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryhub.api.transcript_imports.INLINE_BYTES", 10)
    response = upload(api, ("s1.jsonl", body_of("m1")))
    job = Job.objects.get(public_id=response.json()["job"]["id"])

    assert (response.json()["job"]["state"], UsageRecord.objects.count()) == ("queued", 0)
    run_now(job.pk)
    assert UsageRecord.objects.count() == 1
    assert left_behind() == []


def test_a_job_that_runs_twice_has_the_effect_of_one(api: ApiClient, workspace: Any) -> None:
    folder = transcript_jobs.UploadFolder()
    folder.add("s1.jsonl", [body_of("m1")])
    job = folder.leave_job(workspace)

    first, second = transcript_jobs.run_import_job(job), transcript_jobs.run_import_job(job)

    assert (first["records"]["created"], second, UsageRecord.objects.count()) == (1, {}, 1)


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/x-ndjson", 422),
        (b"", "multipart/form-data; boundary=x", 422),
        (b"--x\r\nnonsense", "multipart/form-data", 400),
        (b"{broken", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"paths": 5}', "application/json", 422),
        (b'{"paths": [5]}', "application/json", 422),
        (b'{"paths": [], "other": 1}', "application/json", 422),
    ],
)
def test_what_is_no_upload_is_refused(api: ApiClient, body: bytes, content_type: str, status: int) -> None:
    response = api.post(IMPORT, body, content_type=content_type)

    assert response.status_code == status, response.content
    assert not Job.objects.exists()
    assert left_behind() == []


def test_open_folders_are_refreshed_and_others_are_not(api: ApiClient, tmp_path: Path, settings: Any) -> None:
    folder = tmp_path / "projects"
    write_file(folder / "p" / "s1.jsonl", answer("m1", usage_of(10)))
    write_file(tmp_path / "private" / "s1.jsonl", answer("m2", usage_of(10)))
    (folder / "sly").symlink_to(tmp_path / "private")
    settings.TRANSCRIPT_DIRS = [str(folder)]

    refreshed = api.post(IMPORT, {"paths": []})
    narrower = api.post(IMPORT, {"paths": [str(folder / "p")]})
    refusals = [
        api.post(IMPORT, {"paths": [str(path)]})
        for path in (tmp_path / "private", folder / ".." / "private", folder / "sly", f"{folder}-other", "/")
    ]

    assert (refreshed.status_code, refreshed.json()["job"]["state"]) == (202, "done")
    assert narrower.status_code == 202
    assert [one.status_code for one in refusals] == [403] * 5
    assert list(UsageRecord.objects.values_list("message_id", flat=True)) == ["m1"]


def test_without_an_open_folder_nothing_can_be_refreshed(api: ApiClient) -> None:
    assert api.post(IMPORT, {"paths": []}).status_code == 403


def test_the_scope_is_needed(api_with: Any) -> None:
    assert upload(api_with("usage:read"), ("s1.jsonl", body_of("m1"))).status_code == 403
    assert not UsageRecord.objects.exists()
