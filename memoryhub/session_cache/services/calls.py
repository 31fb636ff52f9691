"""A tool call as the services take it: checked, with its canonical parameters and its keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from memoryhub.common import errors
from memoryhub.invalidation.domain.dependency import (
    BadDependency,
    Dependency,
    is_storable_text,
    parse_dependencies,
)
from memoryhub.session_cache.domain import cache_key
from memoryhub.session_cache.domain.cache_key import Uncacheable, canonical_json

MAX_PARAMS_BYTES = 256 * 1024  # of canonical parameters: they are stored with each entry


class BadToolCall(errors.Invalid):
    slug = "bad-tool-call"
    title = "This tool call can't be cached"


class BadDependencies(errors.Invalid):
    slug = "bad-dependencies"
    title = "A dependency can't be understood"


@dataclass(frozen=True)
class ToolCall:
    """What identifies a call. The scope is added by the tool's policy."""

    sid: str
    tool: str
    params: Any = None
    tool_version: str = ""
    root: str = ""
    env: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, limit in (("sid", 200), ("tool", 200)):
            if not is_storable_text(getattr(self, name), limit * 4) or len(getattr(self, name)) > limit:
                raise BadToolCall(f"{name} takes 1 to {limit} characters.")
        if len(self.tool_version) > 200 or len(self.root) > 500:
            raise BadToolCall("tool_version takes up to 200 characters, root up to 500.")

    @cached_property
    def params_json(self) -> str:
        """The canonical parameters."""
        try:
            text = canonical_json(self.params)
        except Uncacheable as error:
            raise BadToolCall(f"The parameters have no canonical form: {error}.") from error
        if len(text) > MAX_PARAMS_BYTES:
            raise BadToolCall(f"The parameters are larger than {MAX_PARAMS_BYTES} bytes.")
        return text

    @cached_property
    def env_json(self) -> str:
        try:
            return canonical_json(dict(self.env))
        except Uncacheable as error:
            raise BadToolCall(f"env has no canonical form: {error}.") from error

    @cached_property
    def params_hash(self) -> str:
        return cache_key.params_hash(self.params_json)

    def key_in(self, scope: str) -> str:
        """Return the call's key within a scope."""
        return cache_key.tool_key(
            scope=scope,
            tool=self.tool,
            params_json=self.params_json,
            tool_version=self.tool_version,
            root=self.root,
            env_json=self.env_json,
        )

    @cached_property
    def session_key(self) -> str:
        return self.key_in(cache_key.session_scope(self.sid))

    @cached_property
    def shared_key(self) -> str:
        return self.key_in(cache_key.WORKSPACE_SCOPE)

    def key_for(self, scope: str | None) -> str:
        """Return the key under a policy's scope."""
        return self.shared_key if scope == "workspace" else self.session_key

    def with_normal_text(self, names: Sequence[str]) -> "ToolCall":
        """Return the call with the named parameters in Unicode's composed form."""
        params = cache_key.with_normal_text(self.params, names)
        return ToolCall(self.sid, self.tool, params, self.tool_version, self.root, self.env)


def parse_given(raw: Sequence[Mapping[str, Any]] | None) -> tuple[Dependency, ...]:
    """Return the dependencies that a caller names."""
    try:
        return parse_dependencies(raw or ())
    except BadDependency as error:
        raise BadDependencies(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error
