"""What asking the hub for a tool's result can come to: a hit, a wait for somebody else, or a run of one's own."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from memoryhub.client.fingerprints import Look


@dataclass(slots=True)
class Run:
    """A call that has to be made: what it depends on as it looked before, and the lease under which it is made."""

    front_key: Hashable | None
    request: dict[str, Any] = field(default_factory=dict)
    look: Look | None = None
    lease: str = ""
    verifies: str = ""
    is_cacheable: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    started: float = 0.0


@dataclass(slots=True)
class Wait:
    """Somebody else is computing it."""

    seconds: float


@dataclass(slots=True)
class Hit:
    value: Any


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the hub says to a look-up by hand."""

    state: str
    value: Any = None
    reason: str = ""
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_hit(self) -> bool:
        return self.state == "hit"
