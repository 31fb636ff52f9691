"""Where the demo plays: its workspace, its cast, its moments."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from memoryhub.common import clock
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.workspaces.models import Session, Workspace
from memoryhub.workspaces.principals import Actor
from memoryhub.workspaces.services import ensure_session

DAYS = 14
AGENTS = ("reviewer", "writer", "ops")
SEED = 20_261_129  # the same story every time, told up to now


@dataclass
class Stage:
    """The workspace with its cast. `now` is where the story ends."""

    workspace: Workspace
    now: datetime
    keys: dict[str, Actor]
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))  # noqa: S311 - a story, not a secret

    @property
    def files(self) -> Path:
        return Path(settings.BASE_DIR) / "fixtures" / "demo"

    def ago(self, days: float) -> datetime:
        return self.now - timedelta(days=days)

    def morning(self, days_ago: int, hour: float) -> datetime:
        """Return an hour (UTC) of a day; a moment that has not come yet is the day before's."""
        day = (self.now - timedelta(days=days_ago)).replace(hour=0, minute=0, second=0, microsecond=0)
        at = day + timedelta(hours=hour)
        return at if at < self.now - timedelta(hours=3) else at - timedelta(days=1)

    def last_weekday(self, weekday: int, hour: float) -> datetime:
        """Return an hour of the last such day before today (Monday is 0)."""
        days = (self.now.weekday() - weekday) % 7 or 7
        return self.morning(days, hour)

    def actor(self, name: str) -> Actor:
        """Return an agent by its key, everybody else as a person."""
        return self.keys.get(name) or Actor("user", "", name)

    def writer(self, name: str, *, reason: str = "", session: Session | None = None) -> Writer:
        door = "api" if name in self.keys else "web"
        return Writer(workspace=self.workspace, actor=self.actor(name), door=door, reason=reason, session=session)

    def session(self, sid: str, *, agent: str, user: str, project: str, title: str, at: datetime) -> Session:
        return ensure_session(
            workspace=self.workspace, sid=sid, agent=agent, user=user, project=project, title=title, started_at=at
        )


@dataclass
class Timeline:
    """Steps at their moments, played in the order of time whatever the order in which they were told."""

    steps: list[tuple[datetime, int, Callable[[], object]]] = field(default_factory=list)

    def at(self, moment: datetime, step: Callable[[], object]) -> None:
        self.steps.append((moment, len(self.steps), step))

    def play(self, stage: Stage) -> None:
        """Play everything; what would lie behind the end of the story happens just before it."""
        for moment, _, step in sorted(self.steps, key=lambda entry: entry[:2]):
            with moment_of(stage, moment):
                step()
        self.steps.clear()


@contextmanager
def moment_of(stage: Stage, moment: datetime) -> Iterator[None]:
    """Hold the clock at a moment of the story."""
    with clock.replaying(min(moment, stage.now - timedelta(seconds=5))):
        yield


def scope_of(names: list[str | None]) -> ScopeNames:
    """Return the scope that the story writes as [agent, user, project]."""
    agent, user, project = names
    return ScopeNames(agent, user, project)
