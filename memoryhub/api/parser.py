"""Reading JSON bodies: strict, with the line and column of what is wrong."""

import json
import re
from typing import Any, NoReturn

from django.http import HttpRequest
from ninja.parser import Parser

from memoryhub.common import errors

_MAY_HOLD_SURROGATES = re.compile(rb"\\u[dD][89a-fA-F]")
_MAY_HOLD_NUL = b"\\u0000"


class NotJson(errors.Malformed):
    slug = "not-json"
    title = "The body is not JSON"


class StrictParser(Parser):
    """Parses UTF-8 JSON with finite numbers and whole Unicode characters, and remembers why it couldn't."""

    def parse_body(self, request: HttpRequest) -> Any:
        try:
            return parse_json(request.body)
        except errors.HubError as problem:
            request.body_problem = problem  # type: ignore[attr-defined]
            raise


def parse_json(body: bytes) -> Any:
    """Return the body's value; raises NotJson with line and column, Invalid for characters that can't be stored."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotJson(f"The body is not UTF-8: byte {error.start} can't be read.") from error
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = {"line": error.lineno, "column": error.colno, "message": error.msg}
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}.", errors=[where]) from error
    except RecursionError as error:
        raise NotJson("The body is nested too deeply.") from error
    except ValueError as error:
        raise NotJson(f"{error}.") from error
    if _MAY_HOLD_SURROGATES.search(body) or _MAY_HOLD_NUL in body:
        _check_characters(value)
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _check_characters(value: Any) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, str):
            if "\x00" in item:
                raise errors.Invalid("A text holds the character NUL, which can't be stored.")
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise errors.Invalid("A text holds half of a Unicode surrogate pair.") from error
