"""Whoever stands at a door: a key, a person, a job or a command, and what they may do there."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memoryhub.common import errors

if TYPE_CHECKING:
    from memoryhub.workspaces.models import Workspace

ROOM_SCOPES = ("memories:read", "memories:write", "cache:read", "cache:write", "usage:read", "usage:write")
ALL_SCOPES = (*ROOM_SCOPES, "admin")
ROLES = ("viewer", "editor", "admin")
ROLE_SCOPES: dict[str, frozenset[str]] = {
    "viewer": frozenset(scope for scope in ROOM_SCOPES if scope.endswith(":read")),
    "editor": frozenset(ROOM_SCOPES),
    "admin": frozenset(ALL_SCOPES),
}


class MissingScope(errors.Forbidden):
    slug = "missing-scope"
    title = "The key may not do this"


class OutsideBinding(errors.Forbidden):
    slug = "outside-binding"
    title = "The key is bound to another scope"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did it, in the words that the audit keeps: kind is user, key, job or command."""

    kind: str
    id: str
    label: str


@dataclass(frozen=True, slots=True)
class Binding:
    """The scope that a key is tied to; what it reads and writes stays inside. None ties nothing."""

    agent: str | None = None
    user: str | None = None
    project: str | None = None


_UNBOUND = Binding()


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, in one workspace."""

    workspace: "Workspace"
    kind: str
    id: str
    label: str
    scopes: frozenset[str]
    role: str = ""
    binding: Binding = field(default_factory=Binding)

    def allows(self, scope: str) -> bool:
        """Tell whether the caller may do what the scope names; a write scope includes its read scope."""
        return scope in self.scopes or (scope.endswith(":read") and f"{scope.removesuffix('read')}write" in self.scopes)

    def require(self, scope: str) -> None:
        """Pass a caller who has the scope; raises MissingScope."""
        if not self.allows(scope):
            raise MissingScope(f"This needs the scope {scope}.")

    @property
    def is_bound(self) -> bool:
        """Tell whether it is tied to an agent, a user or a project."""
        return self.binding != _UNBOUND

    def require_unbound(self) -> None:
        """Pass a caller who may touch what holds for everybody here; raises OutsideBinding for a bound key."""
        if self.is_bound:
            raise OutsideBinding("This holds for the whole workspace; a key that is bound may not touch it.")

    def require_price_setter(self) -> None:
        """Pass whoever may set prices: a person who is an admin, a key with usage:write that is bound to nothing."""
        self.require("admin" if self.kind == "user" else "usage:write")
        self.require_unbound()

    @property
    def actor(self) -> Actor:
        return Actor(self.kind, self.id, self.label)


def command_principal(workspace: "Workspace", name: str) -> Principal:
    """Return the principal of a management command, which may do everything."""
    return Principal(workspace, "command", name, name, frozenset(ALL_SCOPES), role="admin")


def job_principal(workspace: "Workspace", kind: str, job_id: str) -> Principal:
    """Return the principal of a job that the hub runs by itself."""
    return Principal(workspace, "job", job_id, kind, frozenset(ALL_SCOPES), role="admin")
