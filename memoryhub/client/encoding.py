"""Python values as JSON that comes back equal: bytes, times, paths, tuples and sets keep their type.

What can't come back equal (an object, NaN, a key that is no text) raises Uncacheable: the tool's result is then returned
to the caller all the same, and only not stored.
"""

import base64
import json
import math
from datetime import date, datetime
from pathlib import Path, PurePath
from typing import Any

_MARK = "__memoryhub__"
_MAX_DEPTH = 100


class Uncacheable(ValueError):
    """The value has no JSON form that comes back equal; the message says why."""


def encode(value: Any, depth: int = 0) -> Any:
    """Return the value as plain JSON types."""
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int:
        return value
    if kind is float:
        if not math.isfinite(value):
            raise Uncacheable("NaN and infinity are not JSON")
        return value
    if depth > _MAX_DEPTH:
        raise Uncacheable(f"nested deeper than {_MAX_DEPTH} levels")
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if kind is dict:
        return _encode_dict(value, depth)
    return _encode_marked(value, depth)


def _encode_dict(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    for name in value:
        if type(name) is not str:
            raise Uncacheable(f"the key {name!r} is no text; as one it could meet another key")
    if _MARK in value:
        raise Uncacheable(f"the key {_MARK} is taken")
    return {name: encode(item, depth + 1) for name, item in value.items()}


def _encode_marked(value: Any, depth: int) -> dict[str, Any]:
    if isinstance(value, bytes | bytearray):
        return {_MARK: type(value).__name__, "base64": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {_MARK: "datetime", "iso": value.isoformat()}
    if isinstance(value, date):
        return {_MARK: "date", "iso": value.isoformat()}
    if isinstance(value, PurePath):
        return {_MARK: "path", "path": str(value)}
    if type(value) is tuple:
        return {_MARK: "tuple", "items": [encode(item, depth + 1) for item in value]}
    if type(value) in (set, frozenset):
        items = [encode(item, depth + 1) for item in value]
        return {_MARK: type(value).__name__, "items": sorted(items, key=lambda item: json.dumps(item, sort_keys=True))}
    raise Uncacheable(f"a {type(value).__name__} has no JSON form")


def decode(value: Any) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    mark = value.get(_MARK)
    if mark is None:
        return {name: decode(item) for name, item in value.items()}
    if mark in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[mark](decode(item) for item in value["items"])
    if mark in ("bytes", "bytearray"):
        data = base64.b64decode(value["base64"])
        return data if mark == "bytes" else bytearray(data)
    if mark == "path":
        return Path(value["path"])
    return (datetime if mark == "datetime" else date).fromisoformat(value["iso"])


def dumps(encoded: Any) -> str:
    """Return encoded JSON as text."""
    return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def loads(text: str) -> Any:
    """Return a fresh value of its own, so that callers never share one. Texts without marks are decoded at C speed."""
    value = json.loads(text)
    return decode(value) if _MARK in text else value
