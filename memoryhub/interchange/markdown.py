"""Markdown notes: a folder of them, or one `MEMORY.md`, with YAML front matter or without.

- A file with front matter is one note; its fields are a memory's fields, others are kept for the way back.
- A file in a folder is one note; its place in the folder is the memory's path.
- A single file, and any `MEMORY.md` without front matter, is a list of notes: each bullet on the first level, and each
  piece of text between headings, with the heading as its subject.
- Written out, notes follow each other in one file, each behind its front matter.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from memoryhub.interchange import memoryhub_jsonl
from memoryhub.interchange.convert import origin_of, without
from memoryhub.interchange.fields import keep_origin, read_content, read_name
from memoryhub.interchange.front_matter import FENCE, split_front_matter, write_front_matter
from memoryhub.interchange.json_stream import peek
from memoryhub.interchange.record import BadRecord, MemoryRecord, Problem, Reading, Records

NAME = "markdown"
# A whole file of notes is held in memory while it is read; a larger one is no file of notes.
MAX_FILE_BYTES = 16 * 1024 * 1024
MARK = "memoryhub"  # the field that tells our own many-notes file
INDEX_NAME = "memory.md"
SUFFIXES = (".md", ".markdown", ".mdown")
_HEADING = re.compile(r"#{1,6}\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"([-*+]|\d{1,9}[.)])\s+(\S.*)$")
_CODE_FENCE = re.compile(r"\s*(```|~~~)")
_ESCAPED_FENCE = re.compile(r"^(\\*)\\(---[ \t]*)$", re.MULTILINE)
_BARE_FENCE = re.compile(r"^(\\*)(---[ \t]*)$", re.MULTILINE)
_SCOPE = ("agent", "user", "project")
_FIELDS = (
    *("id", "subject", "kind", "importance", "tags", "pinned", "path", "state", "trust", "session", "event"),
    *("access_count", "superseded_by", "origin", *memoryhub_jsonl.TIMES, *_SCOPE),
)


def read(stream: BinaryIO) -> Reading:
    """One file of notes."""
    yield from read_file(stream, path="")


def read_file(stream: BinaryIO, *, path: str) -> Reading:
    """A file of a folder when `path` names its place there ("/notes/a.md"), else a file by itself."""
    try:
        text = _text(stream)
    except BadRecord as error:
        yield Problem(1, str(error))
        return
    fields, body, head_lines = split_front_matter(text)
    if MARK in fields:
        yield from _many(text)
    elif fields or (path and path.rsplit("/", 1)[-1].lower() != INDEX_NAME):
        yield from _one(fields, body, line=head_lines + 1, path=path)
    else:
        yield from _listed(body)


def _text(stream: BinaryIO) -> str:
    _, whole = peek(stream)
    raw = whole.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise BadRecord(f"a file of notes is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise BadRecord("not valid UTF-8") from None
    # Only a file that was written with them: a line break inside a note that we wrote is part of the note.
    return text.replace("\r\n", "\n") if text.partition("\n")[0].endswith("\r") else text


def _one(fields: dict[str, Any], body: str, *, line: int, path: str) -> Reading:
    try:
        yield _note(fields, body.removeprefix("\n" if fields else "").removesuffix("\n"), line=line, path=path)
    except BadRecord as error:
        yield Problem(line, str(error))


def _note(fields: dict[str, Any], body: str, *, line: int, path: str = "") -> MemoryRecord:
    known = {key: value for key, value in fields.items() if key in _FIELDS and value is not None}
    rest = without(fields, *_FIELDS, MARK)
    title = next((rest[key] for key in ("name", "title") if isinstance(rest.get(key), str)), None)
    data = {
        "subject": title[:200] if title else None,
        # A note that names its memory was written by the hub: it stands where its head says, if anywhere.
        **({"path": path} if path and "id" not in known else {}),
        **known,
        "content": read_content(body, may_be_empty=bool(path or known.get("path"))),
        "scope": {name: known[name] for name in _SCOPE if name in known},
    }
    record = memoryhub_jsonl.to_record(data, line)
    # `origin` is what another format left, written by us; any other field that is not ours came with the note.
    return record if record.origin else replace(record, origin=keep_origin(NAME, rest))


def _many(text: str) -> Reading:
    """Our own file: notes behind each other, each with a marked head; a rule inside a note is escaped."""
    lines, starts = text.split("\n"), []
    for number, line in enumerate(lines[:-1]):
        if line == FENCE and lines[number + 1].startswith(f"{MARK}:"):
            starts.append(number)
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        fields, body, head_lines = split_front_matter("\n".join(lines[start:end]))
        content = _ESCAPED_FENCE.sub(r"\1\2", _between_blank_lines(body, last=end == len(lines)))
        try:
            yield _note(fields, content, line=start + head_lines + 1)
        except BadRecord as error:
            yield Problem(start + 1, str(error))


def _between_blank_lines(body: str, *, last: bool) -> str:
    """A note without the blank line before and the line breaks behind it; all others belong to the note."""
    body = body.removeprefix("\n")
    return body.removesuffix("\n\n") if last and body.endswith("\n\n") else body.removesuffix("\n")


def _listed(body: str) -> Reading:
    for piece in _pieces(body.split("\n")):
        try:
            subject = read_name(piece.subject[:200], "heading") or ""
            yield MemoryRecord(line=piece.line, content=read_content(piece.text), subject=subject)
        except BadRecord as error:
            yield Problem(piece.line, str(error))


@dataclass
class _Piece:
    line: int
    subject: str
    is_bullet: bool
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def _pieces(lines: list[str]) -> Iterator[_Piece]:
    """Each note of a list; a heading is the subject of what follows it."""
    subject, piece, in_code = "", None, False
    for number, line in enumerate(lines, 1):
        heading = None if in_code else _HEADING.match(line)
        bullet = None if in_code else _BULLET.match(line)
        leaves_bullet = not in_code and bool(line.strip()) and line[0] not in " \t"
        in_code = in_code != bool(_CODE_FENCE.match(line))
        if piece and (heading or bullet or (piece.is_bullet and leaves_bullet)):
            yield piece
            piece = None
        if heading:
            subject = heading[1]
        elif piece:
            piece.lines.append(line)
        elif line.strip():
            piece = _Piece(number, subject, bool(bullet), [bullet[2] if bullet else line])
    if piece:
        yield piece


def write(records: Records) -> Iterator[str]:
    """All notes in one text, each behind its marked front matter."""
    for record in records:
        head = write_front_matter({MARK: 1, **_fields(record)})
        content = _BARE_FENCE.sub(r"\\\1\2", record.content)
        yield f"{head}\n{content}\n\n"


def write_note(record: MemoryRecord) -> str:
    """One note as a file of its own."""
    return f"{write_front_matter(_fields(record))}\n{record.content}\n"


def _is_nothing(value: Any) -> bool:
    """What a head leaves out. An importance of 0 is something."""
    return value is None or value is False or value in ("", [])


def _fields(record: MemoryRecord) -> dict[str, Any]:
    data = memoryhub_jsonl.from_record(record)
    fields = {**data, **data["scope"]}
    kept = {key: fields[key] for key in _FIELDS if not _is_nothing(fields.get(key))}
    own = origin_of(record, NAME)
    if own is None and record.origin is not None:
        return {**kept, "origin": dict(record.origin)}
    return {**kept, **(own or {})}
