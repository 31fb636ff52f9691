"""A long file is read by a process of its own: the same items in their order, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from memoryhub.common import errors
from memoryhub.common.elsewhere import ReaderDied, read_elsewhere

LINES = [b"line %d of the file\n" % number for number in range(50_000)]


def numbered(stream: BinaryIO, start: int) -> Iterator[tuple[int, bytes]]:
    yield from enumerate(stream, start)


def with_process(stream: BinaryIO) -> Iterator[int]:
    yield os.getpid()
    for line in stream:
        yield len(line)


def noisy(stream: BinaryIO) -> Iterator[bytes]:
    print("a library says hello")
    os.write(1, b"and so does what it was written in")
    yield stream.read()


class OnlyHere(Exception):
    """Can be pickled, but not built again."""

    def __init__(self, *, what: str) -> None:
        super().__init__(f"no {what}")


ERRORS = {"hub": errors.Invalid("Not this one."), "plain": ValueError("nor this"), "odd": OnlyHere(what="way")}


def failing(stream: BinaryIO, name: str) -> Iterator[bytes]:
    yield stream.readline()
    raise ERRORS[name]


def dying(stream: BinaryIO) -> Iterator[bytes]:
    yield stream.readline()
    os.kill(os.getpid(), signal.SIGKILL)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not runs(pid)


def test_the_items_come_in_their_order_and_all_of_them() -> None:
    items = list(read_elsewhere(numbered, BytesIO(b"".join(LINES)), 7))
    assert items == list(enumerate(LINES, 7))


def test_the_work_is_done_by_another_process_that_is_gone_afterwards() -> None:
    pid, *lengths = read_elsewhere(with_process, BytesIO(b"".join(LINES[:3])))
    assert pid != os.getpid()
    assert lengths == [len(line) for line in LINES[:3]]
    assert not runs(pid)


def test_what_is_printed_does_not_come_between() -> None:
    assert list(read_elsewhere(noisy, BytesIO(b"the file"))) == [b"the file"]


@pytest.mark.parametrize(("name", "seen"), [("hub", errors.Invalid), ("plain", ValueError), ("odd", RuntimeError)])
def test_an_error_is_raised_where_the_items_are_used(name: str, seen: type[Exception]) -> None:
    items = read_elsewhere(failing, BytesIO(b"one\ntwo\n"), name)
    assert next(items) == b"one\n"
    with pytest.raises(seen, match=str(ERRORS[name])):
        next(items)


def test_a_file_that_cannot_be_read_is_an_error_here() -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(read_elsewhere(numbered, Broken(), 0))


def test_a_killed_reader_is_told() -> None:
    items = read_elsewhere(dying, BytesIO(b"one\ntwo\n"))
    assert next(items) == b"one\n"
    with pytest.raises(ReaderDied):
        list(items)


def test_stopping_early_ends_the_other_process() -> None:
    class Endless(BytesIO):
        taken = 0

        def read(self, size: int | None = -1) -> bytes:
            self.taken += 1
            return b"again and again\n" * 10_000

    stream = Endless()
    items = read_elsewhere(with_process, stream)
    pid = next(items)
    assert next(items) == len(b"again and again\n")
    assert runs(pid)
    items.close()
    assert not runs(pid)
    assert stream.taken < 100  # only as much was read ahead as the pipes hold


def test_killing_the_importer_ends_its_reader() -> None:
    script = (
        "import sys\n"
        "from memoryhub.common.elsewhere import read_elsewhere\n"
        "from tests.common.test_elsewhere import with_process\n"
        "items = read_elsewhere(with_process, open('/dev/zero', 'rb'))\n"
        "print(next(items), flush=True)\n"
        "next(items)\n"
    )
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    importer = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert importer.stdout is not None
    pid = int(importer.stdout.readline())
    assert runs(pid)
    importer.kill()
    importer.wait()
    importer.stdout.close()
    assert ends(pid)
