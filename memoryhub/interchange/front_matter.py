"""The small part of YAML that stands at the head of notes: `key: value`, lists inline or one item a line, quotes."""

import json
import re
from typing import Any

FENCE = "---"
_KEY = re.compile(r"([A-Za-z_][\w .-]*?)\s*:(?:\s+(.*))?$")
_ITEM = re.compile(r"\s*-\s+(.*)$")
_PLAIN = re.compile(r"[\w./@+][\w ./@+-]*")
# Beyond this many digits it is an id that only looks like a number.
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d{1,30})?([eE][+-]?\d{1,3})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


def split_front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """A note's fields, its body, and how many lines the fields took. Without a closed head the whole text is body."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text, 0
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        return {}, text, 0
    fields = _read_fields(lines[1:end])
    if fields is None:
        return {}, text, 0
    return fields, "\n".join(lines[end + 1 :]), end + 1


def write_front_matter(fields: dict[str, Any]) -> str:
    """The same fields as YAML. What could be read as something else is quoted as JSON, which YAML reads alike."""
    lines = [f"{key}: {_write_value(value)}" for key, value in fields.items()]
    return "\n".join([FENCE, *lines, FENCE, ""])


def _read_fields(lines: list[str]) -> dict[str, Any] | None:
    """None when this is no front matter: a rule in a text is written `---` too."""
    fields: dict[str, Any] = {}
    name = ""
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, key = _ITEM.match(line), _KEY.match(line)
        if item and name and (fields[name] is None or isinstance(fields[name], list)):
            fields[name] = [*(fields[name] or []), _read_value(item[1])]
        elif key:
            name = key[1]
            fields[name] = _read_value(key[2] or "")
        elif name and line[0] in " \t":
            # A folded text, or a nested map, which is kept as the text it is.
            fields[name] = f"{fields[name] or ''}\n{line.strip()}".strip()
        else:
            return None
    return fields


def _read_value(text: str) -> Any:
    text = text.strip()
    if text.startswith(('"', "[", "{")):
        try:
            return json.loads(text)
        except ValueError:
            pass
    if text.startswith("[") and text.endswith("]"):
        return [_read_value(part) for part in text[1:-1].split(",") if part.strip()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return text


def _write_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and _read_value(value) == value and value == value.strip():
        return value
    return json.dumps(value, ensure_ascii=False)
