"""JSON of any size, read in bounded memory: one object a line, or the elements of one long array.

Both readers yield `(line, value)` or a Problem, know the line on which each value starts, and go on behind what is
broken.
"""

import codecs
import json
import re
from collections.abc import Iterator
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, BinaryIO, NoReturn

from memoryhub.interchange.record import Problem

# One record, however it is written. A memory is at most 100 KiB; the rest is room for metadata and versions.
MAX_RECORD_BYTES = 16 * 1024 * 1024
CHUNK_BYTES = 256 * 1024
_SPACE = b" \t\r\n"
_NOT_SPACE = re.compile(rb"[^ \t\r\n]")
# Steps over everything up to the next bracket, whole strings at once, so a bracket inside a text is never taken for
# structure. JSON strings hold no raw line break: a quote without its partner on the line is broken, or not read to its
# end yet, and stops the step too.
_TO_STRUCTURE = re.compile(rb'(?:[^"{}\[\]]++|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")*+')
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"')
_SCALAR_END = re.compile(rb"[,\]}\n{]")
# Where reading goes on behind something broken: a line that starts with a brace, or the seam between two objects.
_NEXT_ELEMENT = re.compile(rb'\n[ \t]*(?=\{)|\}[ \t\r\n]*,[ \t\r\n]*(?=\{[ \t\r\n]*")')
_DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_TOO_LARGE = f"the record is larger than {MAX_RECORD_BYTES:,} bytes"

Element = tuple[int, Any] | Problem


def peek(stream: BinaryIO) -> tuple[bytes, BinaryIO]:
    """The start of a stream as UTF-8 without its byte order mark, and the whole of it to be read from there."""
    head = _read_up_to(stream, CHUNK_BYTES)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        stream = _buffered(_Recoded(_buffered(_Joined(head, stream))))
        head = _read_up_to(stream, CHUNK_BYTES)
    head = head.removeprefix(codecs.BOM_UTF8)
    return head, _buffered(_Joined(head, stream))


def read_json(stream: BinaryIO, keys: tuple[str, ...]) -> Iterator[Element]:
    """The values of a file in either container: one a line, or the elements of a list."""
    head, whole = peek(stream)
    return read_elements(whole, keys) if is_list(head, keys) else read_lines(whole)


def is_list(head: bytes, keys: tuple[str, ...]) -> bool:
    """Whether a file that starts so is one JSON document with a list in it, and not JSON Lines."""
    scanner = _Scanner(BytesIO(head))
    first = scanner.next_byte()
    if first == b"[":
        return True
    return first == b"{" and scanner.leads_to_list(keys)


def read_lines(stream: BinaryIO) -> Iterator[Element]:
    """JSON Lines: each line that is not blank is one value."""
    for line, raw, reason in _lines(stream):
        if reason:
            yield Problem(line, reason)
        elif raw.strip(_SPACE):
            yield _parse(raw, line)


def read_elements(stream: BinaryIO, keys: tuple[str, ...]) -> Iterator[Element]:
    """The elements of a top-level array, or of the first of `keys` that holds an array in a top-level object."""
    scanner = _Scanner(stream)
    first = scanner.next_byte()
    if first == b"[":
        yield from scanner.elements()
        yield from scanner.rest()
    elif first == b"{":
        yield from scanner.elements_of_key(keys)
        yield from scanner.rest()
    else:
        yield Problem(scanner.line, "the file holds neither a JSON array nor an object")


def parse_json(raw: bytes) -> Any:
    """One JSON value by the letter of the standard: NaN and Infinity are refused. Raises ValueError with the reason."""
    try:
        return _DECODER.decode(raw.decode())
    except UnicodeDecodeError:
        raise ValueError("not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"broken JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    except ValueError as error:
        reason = str(error)
        raise ValueError(reason if reason.startswith("not a JSON") else "a number has too many digits") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not a JSON number: {name}")


# Made once: `json.loads` with an argument makes a decoder for each call.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _parse(raw: bytes, line: int) -> Element:
    try:
        return line, parse_json(raw)
    except ValueError as error:
        return Problem(line, str(error))


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes, str]]:
    number = 0
    while raw := stream.readline(MAX_RECORD_BYTES + 1):
        number += 1
        if len(raw) <= MAX_RECORD_BYTES:
            yield number, raw, ""
            continue
        while raw and not raw.endswith(b"\n"):
            raw = stream.readline(MAX_RECORD_BYTES)
        yield number, b"", f"the line is longer than {MAX_RECORD_BYTES:,} bytes"


class _Scanner:
    """Finds where elements start and end; the values themselves are parsed by `json`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._buffer = b""
        self._at = 0
        self._passed = 0  # bytes that have left the buffer
        self._ended = False
        self.line = 1

    def next_byte(self) -> bytes:
        """The next byte that is not space, left unread; empty at the end."""
        while True:
            match = _NOT_SPACE.search(self._buffer, self._at)
            if match:
                self._advance(match.start())
                return match[0]
            self._advance(len(self._buffer))
            if not self._fill():
                return b""

    def elements(self) -> Iterator[Element]:
        """From an opening bracket on: every element up to the closing one."""
        self._advance(self._at + 1)
        while byte := self.next_byte():
            if byte == b"]":
                self._advance(self._at + 1)
                return
            if byte == b",":
                self._advance(self._at + 1)
            elif byte in (b"{", b"[", b'"'):
                yield self._compound()
            else:
                yield self._scalar()
        yield Problem(self.line, "the file ends inside the list")

    def elements_of_key(self, keys: tuple[str, ...]) -> Iterator[Element]:
        """The elements below the first wanted key that holds an array. Without one the object itself is the element."""
        started = self.line
        members = self._members_before_list(keys)
        if members is None:
            yield from self.elements()
        elif members and self.next_byte() == b"}":
            self._advance(self._at + 1)
            yield started, members
        else:
            yield Problem(self.line, "broken JSON: no list of records was found")

    def leads_to_list(self, keys: tuple[str, ...]) -> bool:
        """True as well for one object that is written over several lines."""
        started = self.line
        members = self._members_before_list(keys)
        return members is None or bool(members and self.line > started and self.next_byte() == b"}")

    def _members_before_list(self, keys: tuple[str, ...]) -> dict[str, Any] | None:
        """Walks an object's members. None: it stands at the list. Empty: they are broken, or too many."""
        members: dict[str, Any] = {}
        self._advance(self._at + 1)
        while (byte := self.next_byte()) in (b'"', b","):
            if byte == b",":
                self._advance(self._at + 1)
                continue
            name = self._compound()
            if isinstance(name, Problem) or self.next_byte() != b":":
                return {}
            self._advance(self._at + 1)
            if name[1] in keys and self.next_byte() == b"[":
                return None
            value = self._compound() if self.next_byte() in (b"{", b"[", b'"') else self._scalar()
            if isinstance(value, Problem) or self._passed + self._at > MAX_RECORD_BYTES:
                return {}
            members[name[1]] = value[1]
        return members

    def rest(self) -> Iterator[Element]:
        """Whatever stands behind the end of the list is named, not lost silently."""
        if self.next_byte() not in (b"", b",", b"}"):
            yield Problem(self.line, "there is more text behind the end of the list")

    def _compound(self) -> Element:
        """An object, array or string from the current byte to its end."""
        started, depth, position = self.line, 0, self._at
        while True:
            if string := depth == 0 and _STRING.match(self._buffer, position):
                position = string.end()
                break
            if depth:
                position = _TO_STRUCTURE.match(self._buffer, position).end()  # type: ignore[union-attr]
            byte = self._buffer[position : position + 1]
            if byte in _DEPTH:
                position += 1
                depth += _DEPTH[byte]
                if depth <= 0:
                    break
                continue
            # Nothing more here, or a string that is broken or goes on in what has not been read yet.
            if byte and self._buffer.find(b"\n", position) >= 0:
                return self._skip(started, "broken JSON: a quote is never closed")
            if len(self._buffer) - self._at > MAX_RECORD_BYTES:
                return self._skip(started, _TOO_LARGE)
            kept = position - self._at
            if not self._fill():
                return self._skip(started, "broken JSON: a bracket or quote is never closed")
            position = self._at + kept
        raw = self._buffer[self._at : position]
        found = _parse(raw, started)
        # A missing brace makes one element swallow its neighbours: give them back.
        seam = _NEXT_ELEMENT.search(raw, 1) if isinstance(found, Problem) else None
        self._advance(self._at + seam.end() if seam else position)
        return found

    def _scalar(self) -> Element:
        """A number, a word, or rubbish: everything up to the next comma, bracket or line."""
        started = self.line
        while not (match := _SCALAR_END.search(self._buffer, self._at + 1)):
            if len(self._buffer) - self._at > MAX_RECORD_BYTES:
                return self._skip(started, _TOO_LARGE)
            if not self._fill():
                break
        end = match.start() if match else len(self._buffer)
        raw = self._buffer[self._at : end]
        self._advance(end)
        return _parse(raw.strip(_SPACE), started)

    def _skip(self, started: int, reason: str) -> Problem:
        """Steps over a broken element to where the next one seems to start, or to the end."""
        self._advance(min(self._at + 1, len(self._buffer)))
        while not (match := _NEXT_ELEMENT.search(self._buffer, self._at)):
            # A seam may lie across two chunks: keep a little.
            self._advance(max(self._at, len(self._buffer) - 256))
            if not self._fill():
                self._advance(len(self._buffer))
                return Problem(started, reason)
        self._advance(match.end())
        return Problem(started, reason)

    def _advance(self, to: int) -> None:
        self.line += self._buffer.count(b"\n", self._at, to)
        self._at = to

    def _fill(self) -> bool:
        if self._ended:
            return False
        more = self._stream.read(CHUNK_BYTES)
        self._ended = not more
        self._passed += self._at
        self._buffer = self._buffer[self._at :] + more
        self._at = 0
        return bool(more)


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    """Uploads and pipes may give less than they are asked for: ask until there is enough."""
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _buffered(source: Any) -> BinaryIO:
    return BufferedReader(_Raw(source), CHUNK_BYTES)


class _Raw(RawIOBase):
    """Gives `readline` and full reads to anything that has `read(n)`."""

    def __init__(self, source: Any) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        data = self._source.read(len(target))
        target[: len(data)] = data
        return len(data)


class _Joined:
    """What was read ahead, and then the rest."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int) -> bytes:
        if not self._head:
            return bytes(self._rest.read(size))
        data, self._head = self._head[:size], self._head[size:]
        return data


class _Recoded:
    """A UTF-16 stream, read as UTF-8."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        self._left = b""

    def read(self, size: int) -> bytes:
        while not self._left:
            chunk = self._source.read(size)
            self._left = self._decoder.decode(chunk, final=not chunk).encode()
            if not chunk:
                break
        data, self._left = self._left[:size], self._left[size:]
        return data
