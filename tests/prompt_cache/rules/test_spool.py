"""Usage on its way into the ledger: noted at once, recorded soon, whatever happens in between."""

import fcntl
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.domain.response_stream import ResponseReader
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.services import spool as spools
from memoryhub.prompt_cache.services.spool import Note, Spool, note_of_line, session_of_metadata, take_over_orphans
from memoryhub.workspaces.models import Workspace
from tests.prompt_cache.rules.cases import START


def make_note(workspace: Workspace, number: int = 1, **more: Any) -> Note:
    usage = more.pop("usage", {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 9_000})
    values = {
        "model": "claude-opus-5-5",
        "usage": usage,
        "message_id": f"m{number}",
        "source": "proxy",
        "started_at": START,
    }
    return Note(workspace.pk, UsageReport(**values | more))


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def lines(folder: Path) -> list[bytes]:
    return [line for path in folder.glob("usage_*.jsonl") for line in path.read_bytes().splitlines()]


def test_a_note_is_in_the_file_at_once_and_in_the_ledger_after_work(
    spool: Spool, workspace: Workspace, tmp_path: Path
) -> None:
    spool.note(make_note(workspace))
    assert len(lines(tmp_path)) == 1

    assert spool.work() == 0
    assert UsageRecord.objects.get().output_tokens == 7
    assert lines(tmp_path) == []


def test_a_locked_ledger_loses_nothing(
    spool: Spool, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.note(make_note(workspace))
    with monkeypatch.context() as patched:
        patched.setattr(spools, "record_reports", _locked)
        with pytest.raises(OperationalError):
            spool.work()
    assert len(lines(tmp_path)) == 1

    spool.work()

    assert UsageRecord.objects.count() == 1


def _locked(**_: Any) -> None:
    raise OperationalError("database is locked")


def test_the_notes_of_a_dead_process_are_taken_over(spool: Spool, workspace: Workspace, tmp_path: Path) -> None:
    spool.note_running(make_note(workspace, 1, cut=True, usage={"input_tokens": 5, "output_tokens": 1}))
    spool.note(make_note(workspace, 2))
    assert take_over_orphans(tmp_path) == 0  # its owner lives

    assert spool._file is not None
    fcntl.flock(spool._file, fcntl.LOCK_UN)

    assert take_over_orphans(tmp_path) == 1
    assert dict(UsageRecord.objects.values_list("message_id", "flags")) == {"m1": ["cut_stream"], "m2": []}
    assert list(tmp_path.glob("usage_*")) == []


def test_a_response_that_ended_replaces_what_was_noted_while_it_ran(spool: Spool, workspace: Workspace) -> None:
    spool.note_running(make_note(workspace, cut=True, usage={"input_tokens": 5, "output_tokens": 1}))
    spool.note(make_note(workspace, usage={"input_tokens": 5, "output_tokens": 300}))
    spool.work()

    record = UsageRecord.objects.get()
    assert (record.output_tokens, record.flags) == (300, [])


def test_a_note_that_can_not_be_recorded_is_counted_and_holds_up_nobody(
    spool: Spool, workspace: Workspace, tmp_path: Path
) -> None:
    spool.note(make_note(workspace, 1, usage={"input_tokens": "many"}))
    spool.note(make_note(workspace, 2))

    spool.work()

    assert UsageRecord.objects.get().message_id == "m2"
    assert (tmp_path / "lost").stat().st_size == 1


def test_more_than_fits_in_memory_waits_in_the_file(
    spool: Spool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spools, "MOST_WAITING", 3)
    for number in range(8):
        spool.note(make_note(workspace, number))

    spool.work()

    assert UsageRecord.objects.count() == 8


def test_a_folder_that_can_not_be_written_still_records(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    spool = Spool(tmp_path / "file" / "spool")

    spool.note(make_note(workspace))
    spool.work()

    assert UsageRecord.objects.count() == 1


def test_a_workspace_that_is_gone_takes_its_notes_along(spool: Spool, workspace: Workspace) -> None:
    note = make_note(workspace)
    workspace.delete()
    spool.note(note)

    assert spool.work() == 0


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b'{"workspace": 1}', b'{"workspace": "x", "report": {}}'])
def test_a_torn_line_is_no_note(line: bytes) -> None:
    assert note_of_line(line) is None


@pytest.mark.parametrize(
    ("metadata", "session"),
    [
        ({"user_id": "user_a_account_b_session_3f2504e0"}, "3f2504e0"),
        ({"user_id": '{"device_id": "d", "session_id": "s9"}'}, "s9"),
        ({"user_id": '{"session_id": 5}'}, ""),
        ({"user_id": "ana"}, ""),
        ({"user_id": 5}, ""),
        ({}, ""),
        (None, ""),
        ([], ""),
    ],
)
def test_the_session_in_the_metadata(metadata: Any, session: str) -> None:
    assert session_of_metadata(metadata) == session


STREAM = b"""event: message_start\r
data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":3,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":4}},"diagnostics":null}}\r
\r
event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"\\"message_delta\\" \xe4\xbd\xa0"}}

event: message_delta
data: {"type":"message_delta","delta":{},"usage":{"output_tokens":40}}

event: message_delta
data: {"type":"message_delta","delta":{},"usage":{"output_tokens":90,"input_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

"""


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10_000])
def test_a_stream_is_read_in_pieces_of_any_size(size: int) -> None:
    reader = ResponseReader(is_stream=True)
    for start in range(0, len(STREAM), size):
        reader.feed(STREAM[start : start + size])

    assert (reader.message_id, reader.model, reader.complete, reader.diagnostics_given) == ("msg_1", "m", True, True)
    assert reader.usage == {"input_tokens": 3, "output_tokens": 90, "cache_creation": {"ephemeral_5m_input_tokens": 4}}


def test_a_line_without_end_is_not_collected() -> None:
    reader = ResponseReader(is_stream=True)
    for _ in range(40):
        reader.feed(b"x" * 100_000)
    reader.feed(b"\n" + STREAM)

    assert reader.complete
    assert len(reader._rest) < 100


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"type":"error"}', b'{"type":"message","id":5,"usage":"x"}', b"\xff"]
)
def test_a_body_without_a_message_has_no_usage(body: bytes) -> None:
    reader = ResponseReader(is_stream=False)
    reader.read_body(body)

    assert not reader.knows_usage
