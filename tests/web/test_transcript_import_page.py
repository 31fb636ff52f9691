"""Importing transcripts on a page: upload, refresh, what was left out."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.work.models import Job
from tests.flows.transcript_makers import answer, as_bytes, usage_of, write_file

PAGE = "/report/import"


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()
    settings.TRANSCRIPT_DIRS = []


def a_file(name: str, *message_ids: str, broken: bytes = b"") -> SimpleUploadedFile:
    lines = [as_bytes(answer(one, usage_of(10))) for one in message_ids]
    return SimpleUploadedFile(name, b"\n".join([*lines, broken]) + b"\n")


def test_several_files_come_in_at_once(editor: Client) -> None:
    response = editor.post(PAGE, {"file": [a_file("a.jsonl", "m1"), a_file("b.jsonl", "m1", "m2")]}, follow=True)

    assert response.redirect_chain[-1][0] == "/report"
    assert "2 new responses." in response.content.decode()
    assert UsageRecord.objects.count() == 2


def test_lines_that_could_not_be_read_are_told_and_escaped(editor: Client) -> None:
    name = "<img src=x onerror=alert(1)>.jsonl"
    response = editor.post(PAGE, {"file": [a_file(name, "m1", broken=b"{broken")]}, follow=True)

    page = response.content.decode()
    assert "1 line could not be read" in page
    assert "<img src=x" not in page


def test_a_large_upload_shows_its_job(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoryhub.web.transcript_import.INLINE_BYTES", 10)

    response = editor.post(PAGE, {"file": [a_file("a.jsonl", "m1")]})

    assert response["Location"] == f"/jobs/{Job.objects.get().public_id}"


@pytest.mark.parametrize("files", [[], [SimpleUploadedFile("empty.jsonl", b"")]])
def test_nothing_to_upload_is_said_beside_the_field(editor: Client, files: list[Any]) -> None:
    response = editor.post(PAGE, {"file": files})

    assert response.status_code == 422
    assert response.context["form"].errors["file"]
    assert not Job.objects.exists()


def test_open_folders_are_read_by_a_button(editor: Client, tmp_path: Path, settings: Any) -> None:
    write_file(tmp_path / "projects" / "s.jsonl", answer("m1", usage_of(10)))
    settings.TRANSCRIPT_DIRS = [str(tmp_path / "projects")]

    shown = editor.get(PAGE).content.decode()
    response = editor.post("/report/refresh", follow=True)

    assert str(tmp_path / "projects") in shown
    assert "1 new response." in response.content.decode()


def test_without_open_folders_the_page_says_how_to_get_one(editor: Client) -> None:
    assert "MEMORYHUB_TRANSCRIPT_DIRS" in editor.get(PAGE).content.decode()
    assert editor.post("/report/refresh")["Location"] == PAGE


def test_viewers_may_not_import_and_see_no_button(viewer: Client, editor: Client) -> None:
    assert viewer.get(PAGE).status_code == 403
    assert viewer.post(PAGE, {"file": [a_file("a.jsonl", "m1")]}).status_code == 403
    assert viewer.post("/report/refresh").status_code == 403
    assert PAGE not in viewer.get("/report").content.decode()
    assert PAGE in editor.get("/report").content.decode()
    assert not UsageRecord.objects.exists()
