"""Importing again, in another order, after appends, rewrites and kills."""

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from memoryhub.flows import import_transcripts as flow
from memoryhub.flows.import_transcripts import import_transcripts, pending_bytes
from memoryhub.prompt_cache.models import TranscriptFile, UsageRecord
from memoryhub.prompt_cache.services.rollups import check_rollups
from memoryhub.workspaces.models import Workspace
from tests.factories import make_workspace
from tests.flows.transcript_makers import M, answer, append, cost_of, ledger, usage_of, write_file


def run(workspace: Workspace, *paths: Path, **options: Any) -> Any:
    return import_transcripts(workspace=workspace, paths=paths, **options)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A session, its fork with a copied past, and a sub-agent."""
    early, late = {"timestamp": "2026-11-10T20:00:00Z"}, {"timestamp": "2026-11-11T09:00:00Z"}
    return [
        write_file(
            tmp_path / "b.jsonl",
            answer("m1", usage_of(10, 1), **early),
            answer("m1", usage_of(10, 90), **early),
            answer("m2", usage_of(M), **late),
        ),
        write_file(
            tmp_path / "a.jsonl",
            answer("m2", usage_of(M), sessionId="fork", cwd="/w/fork", **late),
            answer("m3", usage_of(7), sessionId="fork", cwd="/w/fork", **late),
        ),
        write_file(
            tmp_path / "s1" / "subagents" / "agent-7.jsonl",
            answer("m4", usage_of(5), isSidechain=True, agentId="7", **late),
            answer("m1", usage_of(10, 900), isSidechain=True, agentId="7", **late),
        ),
    ]


def test_a_second_import_reads_nothing_and_changes_nothing(
    workspace: Workspace, files: list[Path], tmp_path: Path
) -> None:
    first = run(workspace, tmp_path)
    before = ledger(workspace)

    again = run(workspace, tmp_path)

    assert (first.created, first.files) == (4, 3)
    assert (again.created, again.updated, again.lines, again.unchanged_files, again.events) == (0, 0, 0, 3, 0)
    assert ledger(workspace) == before


def test_every_order_of_files_gives_the_same_ledger(db: Any, files: list[Path]) -> None:
    ledgers = []
    for number, order in enumerate(itertools.permutations(files)):
        home = make_workspace(f"order-{number}")
        for path in order:
            run(home, path)
        assert check_rollups(workspace=home) == []
        ledgers.append(ledger(home))

    assert all(one == ledgers[0] for one in ledgers)
    assert {row["message_id"]: row["session"] for row in ledgers[0]}["m2"] == "s1"
    assert {row["message_id"]: row["output_tokens"] for row in ledgers[0]}["m1"] == 90


def test_small_batches_count_and_book_the_same(
    workspace: Workspace, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(make_workspace("whole"), tmp_path)
    monkeypatch.setattr(flow, "SIGHTINGS_PER_WRITE", 1)
    monkeypatch.setattr(flow, "EVENTS_PER_WRITE", 1)

    pieces = run(workspace, tmp_path)

    assert pieces.as_json() == whole.as_json()
    assert ledger(workspace) == ledger(Workspace.objects.get(name="whole"))


def test_an_appended_file_is_read_from_where_it_ended(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "s.jsonl", *(answer(f"m{n}", usage_of(10)) for n in range(50)))
    run(workspace, path)
    append(path, answer("m50", usage_of(M)), "{broken")

    assert pending_bytes(workspace=workspace, paths=[path]) < 1000
    again = run(workspace, path)

    assert (again.lines, again.created) == (2, 1)
    assert [error["line"] for error in again.errors] == [52]


def test_a_response_cut_by_the_end_of_the_file_is_completed_later(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "s.jsonl", answer("m1", usage_of(M, 1)))
    run(workspace, path)
    append(path, answer("m1", usage_of(M, 50_000)))

    again = run(workspace, path)

    assert (again.created, again.updated, cost_of(workspace)) == (0, 1, "5")


@pytest.mark.parametrize("keep_size", [True, False])
def test_a_rewritten_file_is_noticed(workspace: Workspace, tmp_path: Path, keep_size: bool) -> None:
    path = write_file(tmp_path / "s.jsonl", answer("m1", usage_of(10)), answer("m2", usage_of(10)))
    run(workspace, path)
    write_file(
        path,
        answer("x1", usage_of(10)),
        answer("x2", usage_of(10)),
        *([] if keep_size else [answer("x3", usage_of(1))]),
    )
    os.utime(path, ns=(1, 1))

    again = run(workspace, path)

    assert again.created == (2 if keep_size else 3)


def test_a_shortened_file_is_read_anew(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "s.jsonl", *(answer(f"m{n}", usage_of(10)) for n in range(9)))
    run(workspace, path)
    write_file(path, answer("new", usage_of(10)))

    assert run(workspace, path).created == 1


def test_a_line_still_being_written_is_read_once_it_is_whole(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "s.jsonl", answer("m1", usage_of(10)))
    with path.open("ab") as file:
        file.write(b'{"type":"assistant","mess')
    first = run(workspace, path)
    write_file(path, answer("m1", usage_of(10)), answer("m2", usage_of(10)))

    second = run(workspace, path)

    assert [error["line"] for error in first.errors] == [2]
    assert (second.created, second.errors) == (1, [])


def test_a_last_line_without_newline_counts_and_the_next_one_has_the_right_number(
    workspace: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    write_file(path, answer("m1", usage_of(10)), answer("m2", usage_of(10)))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    first = run(workspace, path)
    with path.open("ab") as file:
        file.write(b"\n{broken\n")

    second = run(workspace, path)

    assert first.created == 2
    assert [error["line"] for error in second.errors] == [3]


def test_usage_only_first_and_everything_later(workspace: Workspace, tmp_path: Path) -> None:
    write_file(tmp_path / "s.jsonl", answer("m1", usage_of(10)))

    usage = run(workspace, tmp_path, usage_only=True)
    everything = run(workspace, tmp_path)
    again = run(workspace, tmp_path)

    assert (usage.created, usage.events) == (1, 0)
    assert (everything.created, everything.unchanged, everything.events) == (0, 1, 1)
    assert (again.lines, again.events) == (0, 0)


def test_a_kill_between_data_and_position_costs_only_a_repeat(
    workspace: Workspace, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(flow, "save_positions", die)
        with pytest.raises(KeyboardInterrupt):
            run(workspace, tmp_path)
    before = ledger(workspace)

    again = run(workspace, tmp_path)

    assert not TranscriptFile.objects.filter(offset=0).exists()
    assert (again.created, again.unchanged, ledger(workspace)) == (0, 4, before)


def test_the_stranger_imports_the_same_files_into_their_own_ledger(
    workspace: Workspace, other_workspace: Workspace, files: list[Path], tmp_path: Path
) -> None:
    run(workspace, tmp_path)

    assert run(other_workspace, tmp_path).created == 4
    assert UsageRecord.objects.count() == 8
