"""Scopes: whom a memory belongs to, and what a bound key may reach."""

from dataclasses import dataclass

DIMENSIONS = ("agent", "user", "project")
MAX_CHARS = {"agent": 200, "user": 200, "project": 500}


class ScopeClash(ValueError):
    """A bound key named another agent, user or project than its own."""


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """The named dimensions of a scope; None is not named (a search then matches any)."""

    agent: str | None = None
    user: str | None = None
    project: str | None = None

    def __bool__(self) -> bool:
        return any(self.as_dict().values())

    def as_dict(self) -> dict[str, str | None]:
        return {"agent": self.agent, "user": self.user, "project": self.project}

    def named(self) -> dict[str, str]:
        """Only the dimensions that are named."""
        return {name: value for name, value in self.as_dict().items() if value}

    def within(self, *, agent: str | None, user: str | None, project: str | None) -> "ScopeNames":
        """Itself with the dimensions of a binding filled in; raises ScopeClash where it names others."""
        bound = ScopeNames(agent, user, project)
        for name, value in bound.named().items():
            mine = getattr(self, name)
            if mine is not None and mine != value:
                raise ScopeClash(f"the key is bound to {name} {value!r}")
        return ScopeNames(self.agent or agent, self.user or user, self.project or project)

    def covers(self, other: "ScopeNames") -> bool:
        """Whether a memory of the other scope lies inside this one."""
        return all(getattr(other, name) == value for name, value in self.named().items())

    def check(self) -> "ScopeNames":
        """Return itself, or raise ValueError for a name that is too long or holds control characters."""
        for name, value in self.named().items():
            if len(value) > MAX_CHARS[name]:
                raise ValueError(f"scope.{name} takes at most {MAX_CHARS[name]} characters")
            if any(ord(character) < 32 or ord(character) == 127 for character in value):
                raise ValueError(f"scope.{name} holds a control character")
        return self


ANYWHERE = ScopeNames()  # names nobody: a search matches any scope
