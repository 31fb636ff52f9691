"""What the doctor adds to the report: misses by cause in dollars, writes that nobody read, and advice."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from memoryhub.web.ranges import DayRange
from memoryhub.workspaces.models import Workspace


@dataclass(frozen=True, slots=True)
class Findings:
    """Empty where no request was diagnosed."""

    kpis: list[Any] = field(default_factory=list)
    misses: list[tuple[str, Decimal, int, int]] = field(default_factory=list)
    advice: list[Any] = field(default_factory=list)


def find(workspace: Workspace, days: DayRange) -> Findings:
    """Return the findings of these days."""
    return Findings()
