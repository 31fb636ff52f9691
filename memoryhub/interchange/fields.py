"""Reading one field of foreign JSON: the right type, storable text, numbers in range, or a BadRecord that says why."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from memoryhub.interchange.record import (
    MAX_ACCESS_COUNT,
    MAX_CONTENT_BYTES,
    MAX_NAME_CHARACTERS,
    MAX_ORIGIN_BYTES,
    MAX_TAG_CHARACTERS,
    MAX_TAGS,
    BadRecord,
)

# A NUL as JSON writes it, and not a backslash followed by the text "u0000".
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def storable(text: str, name: str) -> str:
    """Text that both databases and UTF-8 can hold."""
    if "\x00" in text:
        raise BadRecord(f"{name} contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRecord(f"{name} contains half of a surrogate pair, which is not text") from None
    return text


def read_content(value: Any, name: str = "content", *, may_be_empty: bool = False) -> str:
    if value is None:
        raise BadRecord(f"{name} is missing")
    if not isinstance(value, str):
        raise BadRecord(f"{name} is not text")
    if not value.strip() and not may_be_empty:
        raise BadRecord(f"{name} is empty")
    storable(value, name)
    if len(value) > MAX_CONTENT_BYTES // 4 and len(value.encode()) > MAX_CONTENT_BYTES:
        raise BadRecord(f"{name} is larger than {MAX_CONTENT_BYTES:,} bytes")
    return value


def read_name(value: Any, name: str, *, limit: int = MAX_NAME_CHARACTERS) -> str | None:
    """An optional identifier or label; whole numbers, which some systems use as ids, become text."""
    if value is None or value == "":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise BadRecord(f"{name} is not text")
    if len(value) > limit:
        raise BadRecord(f"{name} is longer than {limit} characters")
    return storable(value, name)


def read_choice(value: Any, name: str, choices: tuple[str, ...]) -> str | None:
    if value is None or value == "":
        return None
    if value not in choices:
        raise BadRecord(f"{name} is none of {', '.join(choices)}")
    return str(value)


def read_flag(value: Any, name: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadRecord(f"{name} is neither true nor false")
    return value


def read_importance(value: Any, name: str = "importance") -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord(f"{name} is not a number")
    # An integer of hundreds of digits can't even become a float: compare before converting.
    if not 0 <= value <= 1 or not math.isfinite(value):
        raise BadRecord(f"{name} is not between 0 and 1")
    return float(value)


def read_count(value: Any, name: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord(f"{name} is not a number")
    if not 0 <= value <= MAX_ACCESS_COUNT or value != int(value):
        raise BadRecord(f"{name} is not a whole number between 0 and {MAX_ACCESS_COUNT}")
    return int(value)


def read_tags(value: Any, name: str = "tags") -> tuple[str, ...]:
    """A list of texts, or one text with commas; without doubles, in the file's order."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    if not isinstance(value, (list, tuple)):
        raise BadRecord(f"{name} is not a list")
    tags: dict[str, None] = {}
    for tag in value:
        if not isinstance(tag, str):
            raise BadRecord(f"{name} holds something that is not text")
        if len(tag) > MAX_TAG_CHARACTERS:
            raise BadRecord(f"a tag is longer than {MAX_TAG_CHARACTERS} characters")
        if tag.strip():
            tags[storable(tag, "a tag").strip()] = None
    if len(tags) > MAX_TAGS:
        raise BadRecord(f"{name} holds more than {MAX_TAGS} tags")
    return tuple(tags)


def read_object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRecord(f"{name} is not an object")
    return value


def keep_origin(format_name: str, rest: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is left of a foreign record once the fields are taken out; None when nothing is left."""
    if not rest:
        return None
    try:
        text = _ENCODER.encode(rest)
    except ValueError:
        raise BadRecord("a number is too large, or not a number") from None
    if _ESCAPED_NUL.search(text):
        raise BadRecord("the record contains a NUL character")
    if len(storable(text, "the record").encode()) > MAX_ORIGIN_BYTES:
        raise BadRecord(f"what stands beside the content is larger than {MAX_ORIGIN_BYTES:,} bytes")
    return {"format": format_name, "record": dict(rest)}
