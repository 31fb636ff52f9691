"""The commands that bring memories in and out."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.models import Memory
from memoryhub.workspaces.models import Workspace

SEED = [
    {"memory_id": "mem_1", "content": "likes tea", "created_at": "2026-01-02T03:04:05Z", "tags": ["a"]},
    {"memory_id": "mem_2", "content": "深色主题", "source_session_id": "s1"},
]


@pytest.fixture
def seed_file(tmp_path: Path) -> Path:
    file = tmp_path / "memories.jsonl"
    file.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in SEED) + "{broken\n")
    return file


def run(*arguments: Any) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_json_is_the_whole_report_and_a_bad_line_is_no_failure(workspace: Workspace, seed_file: Path) -> None:
    report = json.loads(run("import_memories", seed_file, "--json", "--workspace", "home"))

    assert (report["created"], report["deduplicated"], report["conflicts"]) == (2, 0, 0)
    assert [problem["line"] for problem in report["skipped"]] == [3]
    change_set = ChangeSet.objects.get(public_id=report["change_set"])
    assert (change_set.actor_kind, change_set.subject_count) == ("command", 2)


def test_a_dry_run_says_the_same_and_stores_nothing(workspace: Workspace, seed_file: Path) -> None:
    report = json.loads(run("import_memories", seed_file, "--json", "--dry-run", "--workspace", "home"))

    assert (report["created"], report["change_set"], Memory.objects.count()) == (2, None, 0)


def test_for_people_the_problems_are_named(workspace: Workspace, seed_file: Path) -> None:
    text = run("import_memories", seed_file, "--workspace", "home")

    assert text.startswith("seed: 2 created, 0 known already, 0 in conflict, 1 skipped\n")
    assert "line 3: broken JSON" in text
    assert "can be reverted" in text


def test_a_folder_of_notes_is_imported(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one note\n")

    assert json.loads(run("import_memories", tmp_path, "--json", "--workspace", "home"))["created"] == 1
    with pytest.raises(CommandError, match="folder"):
        run("import_memories", tmp_path, "--format", "mem0", "--workspace", "home")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere.jsonl",), "No such file"),
        (("{file}", "--format", "csv"), "no format"),
        (("{file}", "--workspace", "none"), "no workspace"),
    ],
)
def test_what_can_not_start_says_why(workspace: Workspace, seed_file: Path, arguments: Any, message: str) -> None:
    given = [argument.format(file=seed_file) for argument in arguments]

    with pytest.raises(CommandError, match=message):
        run("import_memories", *given, *([] if "--workspace" in given else ["--workspace", "home"]))


def test_what_went_in_comes_out(workspace: Workspace, seed_file: Path, tmp_path: Path) -> None:
    run("import_memories", seed_file, "--workspace", "home")
    target = tmp_path / "out.jsonl"
    target.write_text("older")

    text = run("export_memories", "--format", "seed", "--workspace", "home")
    run("export_memories", target, "--format", "seed", "--workspace", "home", "--tag", "a")

    assert [json.loads(line) for line in text.splitlines()] == SEED
    assert [json.loads(line) for line in target.read_text().splitlines()] == SEED[:1]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["memories.jsonl", "out.jsonl"]


def test_notes_are_written_into_a_folder(workspace: Workspace, seed_file: Path, tmp_path: Path) -> None:
    run("import_memories", seed_file, "--workspace", "home")
    folder = tmp_path / "notes"
    folder.mkdir()

    run("export_memories", "--format", "md", "--output", folder, "--workspace", "home")

    assert sorted(file.name for file in folder.iterdir()) == ["mem_1.md", "mem_2.md"]


def test_an_unknown_export_format_is_refused(workspace: Workspace) -> None:
    with pytest.raises(CommandError, match="no format"):
        run("export_memories", "--format", "csv", "--workspace", "home")
