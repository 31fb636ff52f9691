"""Tool calls of all sessions: policies, hits, misses of every kind, results that were evicted, refused or invalidated."""

import zlib
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from memoryhub.flows.demo.content import read_json
from memoryhub.flows.demo.stage import AGENTS, Stage, Timeline
from memoryhub.flows.demo.texts import source_text
from memoryhub.flows.invalidate import announce
from memoryhub.invalidation.domain.dependency import parse_dependencies
from memoryhub.invalidation.domain.selector import Selector
from memoryhub.invalidation.services import Announcement
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.policies import PolicyChoice, set_tool_policy
from memoryhub.session_cache.services.sessions import describe_session
from memoryhub.session_cache.services.store import ToolValue, store_tool_result
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import command_principal

ROOT = "lantern-tea"
CALLS = (4, 10)  # of one session, fewest and most
ROUTINE_CALLS = (1, 3)
SMALL_SESSION_CALLS = (34, 40)
AGAIN_SHARE = 0.6  # of the calls: an agent looks at the same thing a moment later
REWRITTEN_SHARE = 0.2  # of those: the file was rewritten in between
UNCACHED_SHARE = 0.3  # of the sessions have a call that no cache may answer
LEASE_SHARE = 0.2  # of the look-ups: where several may want the same result at once
SMALL_SESSION = "review-audit-apps"  # its results have room for little, so that some are evicted
SMALL_BYTES = 80_000
TOO_LARGE_BYTES = 30_000  # more than a fifth of the small session's room
UNCACHED_TOOLS = ("send_mail", "screenshot")  # one is declared never to be cached, of the other the hub knows nothing


def tell_tools(stage: Stage) -> None:
    """Play the tool calls in the order of time, with the changes of files between them."""
    told = read_json(stage.files / "tools.json")
    for tool, choice in told["policies"].items():
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in choice.items()
        }
        set_tool_policy(workspace=stage.workspace, tool=tool, choice=PolicyChoice(**values), actor=stage.actor("ana"))
    principal = command_principal(stage.workspace, "load_demo")
    describe_session(principal=principal, sid=SMALL_SESSION, tool_capacity_bytes=SMALL_BYTES)
    workshop = Workshop(stage, told)
    timeline = Timeline()
    for session in (
        Session.objects.filter(workspace=stage.workspace, agent__name__in=AGENTS).select_related("agent").order_by("id")
    ):
        workshop.tell_session(timeline, session)
    for change in told["invalidations"]:
        timeline.at(stage.ago(change["days_ago"]), partial(_invalidate, stage, change))
    timeline.play(stage)
    usage.flush()


class Workshop:
    """The files and tools of the story. `versions` counts how often a file was rewritten."""

    def __init__(self, stage: Stage, told: dict[str, Any]) -> None:
        self.stage = stage
        self.told = told
        self.versions: dict[str, int] = {}

    def touch(self, path: str) -> None:
        self.versions[path] = self.versions.get(path, 0) + 1

    def tell_session(self, timeline: Timeline, session: Session) -> None:
        """Spread a session's calls over its first hour; many are made again soon, some when the hour is long over."""
        rng, begins_at = self.stage.rng, session.created_at
        for _ in range(rng.randint(*_calls_of(session))):
            tool = rng.choice(self.told["by_agent"][_agent_of(session)])
            subject = self._subject(tool, session)
            at = begins_at + timedelta(seconds=rng.uniform(5, 3600 if rng.random() < 0.9 else 40_000))
            timeline.at(at, partial(self.call, session, tool, subject))
            if rng.random() < AGAIN_SHARE:
                again_at = at + timedelta(seconds=rng.uniform(4, 50))
                if tool == "read_file" and rng.random() < REWRITTEN_SHARE:
                    timeline.at(at + timedelta(seconds=2), partial(self.touch, subject))
                timeline.at(again_at, partial(self.call, session, tool, subject))
        if rng.random() < UNCACHED_SHARE:
            tool = UNCACHED_TOOLS[rng.random() < 0.3]
            timeline.at(begins_at + timedelta(seconds=rng.uniform(60, 900)), partial(self.call, session, tool, "-"))

    def _subject(self, tool: str, session: Session) -> str:
        """Choose what a call is about: a session looks at few things, and at the first of them most."""
        pool = self.told["tools"][tool]["pool"]
        if session.sid == SMALL_SESSION:
            return str(self.stage.rng.choice(pool))
        start = zlib.crc32(session.sid.encode()) % len(pool)
        return str(pool[(start + int(4 * self.stage.rng.random() ** 2)) % len(pool)])

    def call(self, session: Session, tool: str, subject: str) -> None:
        """Look a call up as the client does, and run the tool on a miss."""
        call = ToolCall(session.sid, tool, {_PARAMETER.get(tool, "query"): subject}, root=ROOT)
        depends_on = parse_dependencies(self._depends_on(tool, subject))
        options = LookupOptions(shown=depends_on, wants_lease=self.stage.rng.random() < LEASE_SHARE)
        answer = look_up(workspace=self.stage.workspace, call=call, options=options)
        if answer.state != "miss":
            return
        value = self._value(session, tool, subject)
        given = ToolValue(
            value,
            depends_on=depends_on,
            cost_ms=self._cost_ms(tool),
            lease_token=answer.lease.token if answer.lease else "",
            is_error=tool == "read_logs" and self.stage.rng.random() < 0.1,
        )
        store_tool_result(session=session, call=call, given=given)

    def _cost_ms(self, tool: str) -> float:
        usual = self.told["tools"].get(tool, {"cost_ms": 350})["cost_ms"]
        return round(usual * self.stage.rng.uniform(0.6, 1.9), 1)

    def _value(self, session: Session, tool: str, subject: str) -> dict[str, str]:
        """What the tool answers: plausible text of a plausible size."""
        least, most = self.told["tools"].get(tool, {"bytes": (40, 60)})["bytes"]
        size = self.stage.rng.randint(least, most)
        if session.sid == SMALL_SESSION and tool == "read_file":
            size = TOO_LARGE_BYTES if self.stage.rng.random() < 0.1 else 6_000 + size // 3
        text = source_text(f"{tool} {subject}", size // 34 + 1)[:size]
        return {"text": text}

    def _depends_on(self, tool: str, subject: str) -> list[dict[str, Any]]:
        version = self.versions.get(subject, 0)
        if tool == "read_file":
            return [_fingerprint(subject, version), {"kind": "tag", "name": "source"}]
        if tool == "list_directory":
            changes = sum(count for path, count in self.versions.items() if path.startswith(subject))
            return [{"kind": "directory", "path": subject, "sha256": f"{changes:064x}"}]
        if tool == "run_tests":
            return [{"kind": "version", "name": "commit", "value": f"{sum(self.versions.values()):07x}"}]
        if tool == "query_metrics":
            return [{"kind": "tag", "name": "dns"}]
        return []


def _calls_of(session: Session) -> tuple[int, int]:
    if session.sid == SMALL_SESSION:
        return SMALL_SESSION_CALLS
    return ROUTINE_CALLS if "-daily-" in session.sid else CALLS


def _agent_of(session: Session) -> str:
    return session.agent.name if session.agent else AGENTS[0]


_PARAMETER = {
    "read_file": "path",
    "list_directory": "path",
    "grep": "pattern",
    "run_tests": "path",
    "look_up_term": "term",
    "search_log": "page",
    "read_logs": "service",
    "screenshot": "url",
    "send_mail": "to",
}
_FIRST_MTIME = datetime(2026, 11, 1).timestamp()  # noqa: DTZ001 - any fixed moment will do


def _fingerprint(path: str, version: int) -> dict[str, Any]:
    """What the client sees of a file: another size and time after each rewrite."""
    modified = int(_FIRST_MTIME) + 3600 * version
    return {"kind": "file", "path": path, "size": 4200 + 37 * version + len(path), "mtime_ns": modified * 10**9}


def _invalidate(stage: Stage, change: dict[str, Any]) -> None:
    announcement = Announcement(
        selector=Selector(**change["selector"]),
        actor=stage.actor(change["by"]),
        reason=change["reason"],
        strategy=change["strategy"],
        door="web",
    )
    announce(workspace=stage.workspace, announcement=announcement)
