"""Files as they come from real machines: broken, huge, strange, or not there. The rest is always imported."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memoryhub.flows.import_transcripts import import_transcripts
from memoryhub.prompt_cache import transcript_reader
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.services import ensure_session
from tests.flows.transcript_makers import answer, usage_of, write_file

GOOD = answer("m1", usage_of(10))
AFTER = answer("m2", usage_of(10))


def run(workspace: Workspace, *paths: Any) -> Any:
    return import_transcripts(workspace=workspace, paths=paths)


@pytest.mark.parametrize(
    "broken",
    [
        "{broken",
        "{",
        "null",
        "[]",
        "5",
        b"\x00" * 50,
        b'{"a": "\xff\xfe"}',
        '{"a": 1}}',
        "[" * 5000,
        answer("mx", {"input_tokens": "9"}),
        answer("mx", {"input_tokens": 10**30}),
        answer("mx", {"input_tokens": 1.5}),
        answer("mx", usage_of(1), timestamp="never"),
        answer("", usage_of(1), uuid=None, requestId=None),
    ],
)
def test_a_bad_line_is_named_and_the_rest_is_imported(workspace: Workspace, tmp_path: Path, broken: Any) -> None:
    path = write_file(tmp_path / "s.jsonl", GOOD, broken, AFTER)

    result = run(workspace, tmp_path)

    assert [(error["file"], error["line"]) for error in result.errors] == [(str(path), 2)]
    assert result.errors[0]["reason"]
    assert (result.created, result.lines) == (2, 3)


@pytest.mark.parametrize(
    "strange",
    [
        "",
        "   ",
        {"type": "summary", "summary": "...", "leafUuid": "a"},
        {"type": "brand-new", "message": {"usage": {"input_tokens": "?"}}},
        {"type": 5, "message": 7, "uuid": 9, "timestamp": 11, "cwd": [], "sessionId": {}},
        {"type": "user", "message": {"role": "user", "content": "x"}, "uuid": "u9", "parentUuid": "gone", "cwd": "/w"},
        {"type": "system", "subtype": "compact_boundary", "uuid": "c1", "logicalParentUuid": "u1"},
        answer("mx", {}),
    ],
)
def test_unknown_kinds_are_skipped(workspace: Workspace, tmp_path: Path, strange: Any) -> None:
    write_file(tmp_path / "s.jsonl", GOOD, strange, AFTER)

    result = run(workspace, tmp_path)

    assert (result.created, result.errors) == (2, [])


def test_byte_order_mark_and_windows_line_ends(workspace: Workspace, tmp_path: Path) -> None:
    body = b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(line).encode() for line in (GOOD, AFTER)) + b"\r\n"
    (tmp_path / "s.jsonl").write_bytes(body)

    assert run(workspace, tmp_path).created == 2


def test_half_an_emoji_in_the_content_and_in_names(workspace: Workspace, tmp_path: Path) -> None:
    cut = answer("m3", usage_of(10), cwd="/w/\ud83d", message={"content": [{"type": "text", "text": "\ud83d"}]})
    write_file(tmp_path / "s.jsonl", json.dumps(cut), json.dumps(answer("m4", usage_of(1), cwd="/w/\u0000x")))

    assert run(workspace, tmp_path).created == 2
    assert sorted(UsageRecord.objects.values_list("project", flat=True)) == ["/w/?", "/w/x"]


def test_a_line_too_long_to_hold_is_named_and_passed_over(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript_reader, "LONGEST_LINE_BYTES", 10_000)
    write_file(tmp_path / "s.jsonl", GOOD, '{"x": "' + "y" * 3_000_000 + '"}', AFTER)

    result = run(workspace, tmp_path)

    assert (result.created, [error["line"] for error in result.errors]) == (2, [2])


def test_paths_that_lead_nowhere_are_named(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    good = write_file(tmp_path / "ok" / "s.jsonl", GOOD)

    result = run(workspace, tmp_path / "missing", tmp_path / "empty", tmp_path / "pipe", "with\0nul", good)

    assert [error["line"] for error in result.errors] == [0, 0, 0, 0]
    assert (result.created, result.readable) == (1, True)


def test_links_that_lead_out_of_the_folder_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    write_file(tmp_path / "outside" / "secret.jsonl", GOOD)
    write_file(tmp_path / "named" / "s.jsonl", AFTER)
    (tmp_path / "named" / "link.jsonl").symlink_to(tmp_path / "outside" / "secret.jsonl")
    (tmp_path / "named" / "folder").symlink_to(tmp_path / "outside")

    run(workspace, tmp_path / "named")

    assert list(UsageRecord.objects.values_list("message_id", flat=True)) == ["m2"]


def test_one_file_named_twice_is_read_once(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "s.jsonl", GOOD)

    result = run(workspace, path, tmp_path, tmp_path / "." / "s.jsonl")

    assert (result.files, result.lines) == (1, 1)


def test_sub_agents_get_their_type_from_the_file_beside_them(workspace: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "s1" / "subagents"
    write_file(folder / "agent-7.jsonl", answer("m1", usage_of(10), isSidechain=True, agentId="7"))
    (folder / "agent-7.meta.json").write_text(json.dumps({"agentType": "Explore", "taskKind": "x"}))
    write_file(folder / "agent-8.jsonl", answer("m2", usage_of(10), isSidechain=True, agentId="8"))
    (folder / "agent-8.meta.json").write_text("{broken")

    run(workspace, tmp_path)

    found = UsageRecord.objects.order_by("message_id").values_list("agent", "chain", "session")
    assert list(found) == [("Explore", "s1/7", "s1"), ("subagent", "s1/8", "s1")]


def test_errors_are_listed_up_to_a_limit_and_counted_beyond(workspace: Workspace, tmp_path: Path) -> None:
    write_file(tmp_path / "s.jsonl", *["{broken"] * 1200, GOOD)

    result = run(workspace, tmp_path)

    assert (len(result.errors), result.error_count, result.created) == (1000, 1200, 1)


def test_a_file_name_that_is_not_utf_8(workspace: Workspace, tmp_path: Path) -> None:
    path = write_file(tmp_path / "plain.jsonl", GOOD, "{broken")
    os.rename(path, os.fsencode(tmp_path) + b"/odd-\xff.jsonl")

    first, again = run(workspace, tmp_path), run(workspace, tmp_path)

    assert (first.created, again.unchanged_files) == (1, 1)
    assert first.errors[0]["file"].endswith("/odd-\ufffd.jsonl")
    json.dumps(first.as_json(), ensure_ascii=False).encode()


def test_a_session_that_somebody_described_keeps_its_description(workspace: Workspace, tmp_path: Path) -> None:
    ensure_session(workspace=workspace, sid="s1", agent="reviewer", project="declared")
    write_file(tmp_path / "s.jsonl", GOOD, answer("m3", usage_of(1), sessionId="s2"))

    run(workspace, tmp_path)

    found = Session.objects.order_by("sid").values_list("sid", "agent__name", "project")
    assert list(found) == [("s1", "reviewer", "declared"), ("s2", "main", "/w/web")]
