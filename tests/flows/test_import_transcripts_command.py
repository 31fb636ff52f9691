"""`manage.py import_transcripts PATH... [--json]`."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.factories import make_workspace
from tests.flows.transcript_makers import answer, cost_of, usage_of, write_file


@pytest.fixture
def default(db: Any) -> Any:
    return make_workspace("default")


def run(capsys: pytest.CaptureFixture[str], *args: Any) -> tuple[int, str, str]:
    code = 0
    try:
        call_command("import_transcripts", *map(str, args))
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_json_names_files_lines_records_events_and_errors(
    default: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    final = usage_of(3, 5000, 10_000, 20_000, 0, 10_000)
    path = write_file(
        tmp_path / "s1.jsonl", *(answer("m1", {**final, "output_tokens": o}) for o in (1, 1, 5000)), "{broken"
    )

    code, out, _ = run(capsys, tmp_path, "--json")

    shown = json.loads(out)
    assert code == 0
    assert (shown["files"], shown["lines"], shown["events"]) == (1, 4, 2)
    assert shown["records"] == {"created": 1, "updated": 0, "unchanged": 0}
    assert [(error["file"], error["line"]) for error in shown["errors"]] == [(str(path), 4)]
    assert cost_of(default) == "0.184012"


def test_people_get_a_sentence_and_the_bad_lines(
    default: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_file(tmp_path / "s1.jsonl", answer("m1", usage_of(5)), "{broken")

    code, out, err = run(capsys, tmp_path)

    assert code == 0
    assert "1 files (0 unchanged), 2 lines: 1 responses new" in out
    assert "s1.jsonl:2: is not valid JSON" in err


@pytest.mark.parametrize("lines", [None, ["{broken"], ["null", "{"]])
def test_it_fails_where_nothing_could_be_read(
    default: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str] | None
) -> None:
    if lines is not None:
        write_file(tmp_path / "s1.jsonl", *lines)

    code, out, _ = run(capsys, tmp_path / ("missing" if lines is None else "s1.jsonl"), "--json")

    assert code == 1
    assert json.loads(out)["errors"]


def test_nothing_new_is_no_failure(default: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(tmp_path / "s1.jsonl", answer("m1", usage_of(5)))
    run(capsys, tmp_path, "--json")

    code, out, _ = run(capsys, tmp_path, "--json")

    assert (code, json.loads(out)["records"]["created"]) == (0, 0)


def test_an_unknown_workspace_is_named(default: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, tmp_path, "--workspace", "nowhere")

    assert code == 1
    assert "nowhere" in err
