"""From a Python call to a tool call: which arguments count, how paths are spelled, which version of the code ran."""

import hashlib
import inspect
import os
import socket
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memoryhub.client.encoding import encode
from memoryhub.client.fingerprints import Depends, real_path


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """How one tool is cached, as its decorator says."""

    tool: str
    ttl_seconds: float | None
    depends_on: tuple[Depends, ...]
    version: str
    scope: str
    session: str | None
    root: str


class CallShape:
    """The parameters of one function."""

    def __init__(self, function: Callable[..., Any], options: CacheOptions) -> None:
        self._signature = inspect.signature(function)
        self._options = options
        self._root = real_path(options.root)
        self._root_below = self._root.rstrip("/") + "/"
        self._paths = {
            name
            for rule in options.depends_on
            if rule.kind in ("file", "directory", "tree")
            for name in rule.names
            if name in self._signature.parameters
        }
        self.has_paths = any(rule.kind in ("file", "directory", "tree") for rule in options.depends_on)

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, is_method: bool) -> dict[str, Any]:
        """Return the call's arguments by name, defaults filled in; a method's own object is left out."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        if is_method:
            owner = arguments.pop(next(iter(arguments)))
            identity = getattr(owner, "memoryhub_key", None)
            if identity is not None:
                arguments["self"] = identity() if callable(identity) else identity
        return arguments

    def params(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters as they make the key: paths as real ones, relative to the root where they lie below it."""
        return {
            name: self._spelled(value) if name in self._paths else encode(value) for name, value in arguments.items()
        }

    def _spelled(self, value: Any) -> Any:
        if isinstance(value, list | tuple | set | frozenset):
            return [self._spelled(item) for item in value]
        if not isinstance(value, str | os.PathLike):
            return encode(value)
        path = real_path(value)
        if path == self._root:
            return "."
        return path.removeprefix(self._root_below) if path.startswith(self._root_below) else path

    @property
    def root_id(self) -> str:
        """Name the root for the key: the same path on another machine is another root."""
        return f"{socket.gethostname()}:{self._root}" if self.has_paths else ""


def quick_key(args: tuple[Any, ...], kwargs: dict[str, Any], *, with_folder: bool) -> Hashable | None:
    """Return a key for the front cache without looking at anything, or None for arguments that have no quick one.

    Types are part of it, for 1, 1.0 and True are equal in Python; so is the folder that relative paths start from.
    """
    parts: list[Any] = []
    for value in args:
        if type(value) not in _PLAIN:
            return None
        parts.append(type(value))
        parts.append(value)
    for name in sorted(kwargs) if kwargs else ():
        value = kwargs[name]
        if type(value) not in _PLAIN:
            return None
        parts.append(name)
        parts.append(type(value))
        parts.append(value)
    if with_folder:
        parts.append(os.getcwd())
    return tuple(parts)


_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def version_of(function: Callable[..., Any]) -> str:
    """Return a short hash of the function's source, so that changed code does not answer with old results."""
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:12]
