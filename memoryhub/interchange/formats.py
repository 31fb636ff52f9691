"""The formats the hub reads and writes, in one table, and which one a file is in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from typing import Any, BinaryIO

from memoryhub.interchange import (
    langgraph,
    markdown,
    mcp_memory,
    mcp_memory_service,
    mem0,
    memoryhub_jsonl,
    seed,
)
from memoryhub.interchange.json_stream import is_list, peek, read_elements, read_lines
from memoryhub.interchange.record import Reading, Records

DEFAULT_FORMAT = "memoryhub"
AUTO = "auto"
_ALIASES = {
    "jsonl": "memoryhub",
    "memories.jsonl": "seed",
    "memory.jsonl": "mcp",
    "mcp-memory": "mcp",
    "langgraph-store": "langgraph",
    "md": "markdown",
}
_LIST_KEYS = ("results", "memories", "items")
# How many records are looked at; the first may be broken, or bare.
_SAMPLES = 20


@dataclass(frozen=True)
class Format:
    name: str
    title: str
    read: Callable[[BinaryIO], Reading]
    write: Callable[[Records], Iterator[str]]
    media_type: str
    suffix: str


FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "memoryhub",
            "MemoryHub JSON Lines",
            memoryhub_jsonl.read,
            memoryhub_jsonl.write,
            "application/x-ndjson",
            ".jsonl",
        ),
        Format("seed", "memories.jsonl", seed.read, seed.write, "application/x-ndjson", ".jsonl"),
        Format("mcp", "MCP memory.jsonl", mcp_memory.read, mcp_memory.write, "application/x-ndjson", ".jsonl"),
        Format("mem0", "mem0", mem0.read, mem0.write, "application/json", ".json"),
        Format(
            "mcp-memory-service",
            "mcp-memory-service",
            mcp_memory_service.read,
            mcp_memory_service.write,
            "application/json",
            ".json",
        ),
        Format("langgraph", "LangGraph store", langgraph.read, langgraph.write, "application/json", ".json"),
        Format("markdown", "Markdown notes", markdown.read, markdown.write, "text/markdown", ".md"),
    )
}


class UnknownFormat(ValueError):
    """No format goes by this name, or a file is in none of them."""


def get_format(name: str) -> Format:
    """The format of this name; `mcp_memory_service` and `MCP-Memory-Service` are the same."""
    wanted = name.strip().lower().replace("_", "-")
    wanted = _ALIASES.get(wanted, wanted)
    if wanted not in FORMATS:
        raise UnknownFormat(f"there is no format {name[:40]!r}; the formats are {', '.join(FORMATS)}")
    return FORMATS[wanted]


def open_format(stream: BinaryIO, *, name: str = AUTO, file_name: str = "") -> tuple[Format, BinaryIO]:
    """The format asked for, or the one that a file's start and name tell, and the stream from its beginning."""
    if name.strip().lower() != AUTO:
        return get_format(name), stream
    head, whole = peek(stream)
    return detect(head, file_name=file_name), whole


def detect(head: bytes, *, file_name: str = "") -> Format:
    """Which format a file is in, by the shape of its first records."""
    if file_name.lower().endswith(markdown.SUFFIXES):
        return FORMATS["markdown"]
    for value in islice(_objects(head), _SAMPLES):
        if found := _by_shape(value, head):
            return FORMATS[found]
    start = head.lstrip()[:1]
    if start in (b"{", b"[", b""):
        # Nothing whole in sight: read as our own, so that each line is named with its reason.
        return FORMATS[DEFAULT_FORMAT]
    if b"\x00" in head or not _is_text(head):
        raise UnknownFormat("the file is not text; " + f"the formats are {', '.join(FORMATS)}")
    return FORMATS["markdown"]


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    elements = read_elements if is_list(head, _LIST_KEYS) else lambda stream, _: read_lines(stream)
    for element in elements(BytesIO(head), _LIST_KEYS):
        if isinstance(element, tuple) and isinstance(element[1], dict):
            yield element[1]


def _by_shape(data: dict[str, Any], head: bytes) -> str | None:
    keys = data.keys()
    if data.get("type") in ("entity", "relation"):
        return "mcp"
    if keys & {"memory_id", "source_session_id", "last_accessed"}:
        return "seed"
    if keys >= {"namespace", "key", "value"}:
        return "langgraph"
    if "memory" in keys:
        return "mem0"
    if "content" not in keys:
        return None
    foreign = keys & {"content_hash", "memory_type"} or b'"export_metadata"' in head[:4096]
    return "mcp-memory-service" if foreign else DEFAULT_FORMAT


def _is_text(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True
