"""Reading settings from the environment: typed, and a bad value stops the start with a sentence that names it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def _bad(name: str, value: str, expected: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"The setting {name} is {value!r}, but it must be {expected}.")


def text(name: str, default: str = "") -> str:
    """Return the variable's text, or the default where it is absent."""
    return os.environ.get(name, default)


def secret(name: str, default: str = "") -> str:
    """Return a secret from NAME, or from the file that NAME_FILE names (as container platforms mount them)."""
    file_name = os.environ.get(f"{name}_FILE")
    if file_name:
        try:
            return Path(file_name).read_text().strip()
        except OSError as error:
            raise _bad(f"{name}_FILE", file_name, f"a readable file ({error.strerror})") from error
    return text(name, default)


def _parsed(name: str, default: T, parse: Callable[[str], T], expected: str) -> T:
    value = os.environ.get(name)
    if value is None or value == "":
        return default
    try:
        return parse(value.strip())
    except ValueError as error:
        raise _bad(name, value, expected) from error


def integer(name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    """Return a whole number between `least` and `most`."""

    def parse(value: str) -> int:
        number = int(value)
        if not least <= number <= most:
            raise ValueError
        return number

    return _parsed(name, default, parse, f"a whole number from {least} to {most}")


def flag(name: str, default: bool = False) -> bool:
    """Return true for 1/true/yes/on and false for 0/false/no/off."""

    def parse(value: str) -> bool:
        if value.lower() in _TRUE:
            return True
        if value.lower() in _FALSE:
            return False
        raise ValueError

    return _parsed(name, default, parse, "one of 1, 0, true, false, yes, no, on, off")


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Return one of the allowed words."""

    def parse(value: str) -> str:
        if value not in allowed:
            raise ValueError
        return value

    return _parsed(name, default, parse, "one of " + ", ".join(allowed))


def words(name: str, default: str = "") -> list[str]:
    """Return a comma-separated list without blanks."""
    return [word.strip() for word in text(name, default).split(",") if word.strip()]


def folder(name: str, default: Path) -> Path:
    """Return an absolute folder, made if it is missing, readable by its owner only."""
    path = Path(text(name) or default).expanduser().resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _bad(name, str(path), f"a folder that can be written ({error.strerror})") from error
    return path


def database_url(name: str) -> dict[str, Any] | None:
    """Return Django's connection parts of a `postgres://user:password@host:port/name` URL, or None where it is absent.

    A host that starts with `/` (percent-encoded) or a `?host=` is the folder of a Unix socket.
    """
    value = secret(name)
    if not value:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise _bad(name, "...", "a URL of the form postgres://user:password@host:port/name")
    options = dict(parse_qsl(parts.query))
    try:
        port = parts.port
    except ValueError as error:
        raise _bad(name, "...", "a URL with a number as its port") from error
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", unquote(parts.hostname or "")),
        "PORT": str(port or ""),
        "OPTIONS": options,
    }
