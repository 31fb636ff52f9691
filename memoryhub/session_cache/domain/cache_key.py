"""The key of a tool result: what must be equal for two calls to be the same call.

Parameters become canonical JSON after RFC 8785 (members sorted by UTF-16 code units, shortest numbers), with one
addition that the RFC leaves out because JavaScript can't: whole numbers of any size stay exact, and a float at or above
2^53 keeps a mark of being one, so that it never meets a whole number that it only rounds to.
"""

import hashlib
import math
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any
from unicodedata import normalize

EXACT_FLOAT_LIMIT = 2**53  # above it a float can't tell neighbouring whole numbers apart
MAX_DEPTH = 200
REDACTED = "[redacted]"
_SECRET_WORDS = (
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "private_key",
)


class Uncacheable(ValueError):
    """The value has no canonical JSON; the message says why."""


def canonical_json(value: Any) -> str:
    """Return the one text that all equal JSON values share."""
    pieces: list[str] = []
    _write(value, pieces.append, 0)
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Uncacheable("a text holds half of a surrogate pair, which is no character") from error
    return text


def _write(value: Any, put: Any, depth: int) -> None:
    if isinstance(value, str):
        put(encode_basestring(value))
    elif value is None or value is True or value is False:
        put({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        put(_whole_number(value))
    elif isinstance(value, float):
        put(_number(value))
    elif depth >= MAX_DEPTH:
        raise Uncacheable(f"nested deeper than {MAX_DEPTH} levels")
    elif isinstance(value, list | tuple):
        _write_list(value, put, depth + 1)
    elif isinstance(value, dict):
        _write_object(value, put, depth + 1)
    else:
        raise Uncacheable(f"a {type(value).__name__} has no JSON form")


def _write_list(items: list[Any] | tuple[Any, ...], put: Any, depth: int) -> None:
    put("[")
    for index, item in enumerate(items):
        if index:
            put(",")
        _write(item, put, depth)
    put("]")


def _write_object(members: dict[Any, Any], put: Any, depth: int) -> None:
    for name in members:
        if not isinstance(name, str):
            raise Uncacheable(f"the key {name!r} is no text; as one it could meet another key")
    put("{")
    for index, name in enumerate(sorted(members, key=_utf16)):
        put("," if index else "")
        put(encode_basestring(name))
        put(":")
        _write(members[name], put, depth)
    put("}")


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _whole_number(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError as error:  # Python refuses to write out numbers of more than 4,300 digits
        raise Uncacheable("a number has too many digits") from error


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Uncacheable("NaN and infinity are not JSON")
    if value.is_integer():
        return repr(int(value)) if abs(value) < EXACT_FLOAT_LIMIT else repr(value)
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa
    power = int(exponent)
    if power < -6:
        return f"{mantissa}e{power}"
    digits = mantissa.lstrip("-").replace(".", "")  # RFC 8785 writes 1e-5 and 1e-6 out; repr does not
    return ("-" if value < 0 else "") + "0." + "0" * (-power - 1) + digits


def tool_key(
    *,
    scope: str,
    tool: str,
    params_json: str,
    tool_version: str = "",
    root: str = "",
    env_json: str = "{}",
) -> str:
    """Return the whole SHA-256 of everything that makes two calls the same, within one workspace.

    `scope` is `session_scope(sid)`, or WORKSPACE_SCOPE where the tool's policy shares results between sessions.
    """
    digest = hashlib.sha256()
    for part in (scope, tool, tool_version, root, env_json, params_json):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data))  # lengths keep "ab" + "c" apart from "a" + "bc"
        digest.update(data)
    return digest.hexdigest()


WORKSPACE_SCOPE = "workspace"


def session_scope(sid: str) -> str:
    """Return the scope of results that stay in one session."""
    return f"session:{sid}"


def params_hash(params_json: str) -> str:
    """Return the digest by which an invalidation finds entries with exactly these parameters."""
    return hashlib.sha256(params_json.encode()).hexdigest()


def with_normal_text(params: Any, names: Iterable[str]) -> Any:
    """Return the parameters with the named ones in Unicode's composed form.

    Only where a tool's policy asks for it: NFC and NFD spellings are two different files on Linux.
    """
    wanted = set(names)
    if not wanted or not isinstance(params, dict):
        return params
    return {
        name: normalize("NFC", value) if name in wanted and isinstance(value, str) else value
        for name, value in params.items()
    }


def redacted(params: Any, names: Iterable[str] = ()) -> Any:
    """Return the parameters as they may be stored and shown: named ones, and those that sound like secrets, are hidden."""
    return _hidden(params, {name.lower() for name in names}, 0)


def _hidden(value: Any, names: set[str], depth: int) -> Any:
    if depth > MAX_DEPTH:
        return REDACTED
    if isinstance(value, dict):
        return {k: REDACTED if _is_secret(k, names) else _hidden(v, names, depth + 1) for k, v in value.items()}
    if isinstance(value, list):
        return [_hidden(item, names, depth + 1) for item in value]
    return value


def _is_secret(name: str, names: set[str]) -> bool:
    lowered = name.lower().replace("-", "_")
    return (
        lowered in names
        or name.lower() in names
        or any(lowered == word or lowered.endswith("_" + word) for word in _SECRET_WORDS)
    )
