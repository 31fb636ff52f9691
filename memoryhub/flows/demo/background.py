"""The rest of the team's two weeks: short conversations, daily routines, and the usage of all of them without bodies.

Here the counters come from a chain of requests that grows turn by turn: a request reads what the one before cached if it
starts within the TTL, and pays for the whole prefix again if not. Now and then something breaks the prefix.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from memoryhub.flows.demo.content import read_json_lines
from memoryhub.flows.demo.requests import OUTPUT_TOKENS_A_SECOND, usage_of
from memoryhub.flows.demo.stage import DAYS, SEED, Stage, Timeline, moment_of
from memoryhub.prompt_cache.domain.pricing import Tokens
from memoryhub.prompt_cache.domain.reports import UsageReport, sightings_of_report
from memoryhub.prompt_cache.services.doctor import diagnose_pending
from memoryhub.prompt_cache.services.usage import record_usage
from memoryhub.session_cache.services.events import GivenEvent, append_events
from memoryhub.workspaces.models import Session

MODELS = {
    "reviewer": ("claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5"),
    "writer": ("claude-sonnet-5-5", "claude-sonnet-5-5", "claude-opus-5-5"),
    "ops": ("claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"),
}
UNPRICED_MODEL = "claude-mythos-5-2"  # on trial by the writer; nobody has published its price
TTL_SECONDS = {"5m": 300, "1h": 3600}
BREAKS = ("previous_message_not_found", "unavailable")  # what the provider says of them
BREAK_SHARE = 0.02  # of the requests
PAUSE_SHARE = 0.06  # of the turns: somebody has lunch, a meeting, or another pull request
WEEKEND_SHARE = 0.25  # of a working day's requests


@dataclass(frozen=True, slots=True)
class Routine:
    """What one agent does every day; `{count}` in the answer is a number of that day."""

    title: str
    agent: str
    user: str
    project: str
    hour: float
    requests: int
    model: str
    ask: str
    say: str


ROUTINES = (
    Routine(
        title="Morning queue of pull requests",
        agent="reviewer",
        user="ana",
        project="shop-web",
        hour=7.0,
        requests=34,
        model="claude-opus-5-5",
        ask="Which pull requests wait for a review, and which of them first?",
        say="{count} wait. First the smallest one that others build on; two need a second person because they touch prices.",
    ),
    Routine(
        title="夜间告警分拣",
        agent="ops",
        user="王梅",
        project="infra",
        hour=1.0,
        requests=22,
        model="claude-haiku-5-5",
        ask="昨夜有哪些告警？哪些需要处理？",
        say="共 {count} 条，一条需要处理：备库延迟曾超过三十秒，已恢复。其余都是磁盘提醒，已在清单中。",
    ),
    Routine(
        title="Reader questions of the day",
        agent="writer",
        user="tom",
        project="handbook",
        hour=12.5,
        requests=18,
        model="claude-sonnet-5-5",
        ask="What did readers ask today that no article answers?",
        say="{count} questions came in, most about returns and storage. One has no article yet; an outline is in the drafts.",
    ),
)


@dataclass(frozen=True, slots=True)
class Chain:
    """One session's requests as the ledger sees them."""

    sid: str
    agent: str
    user: str
    project: str
    model: str
    ttl: str
    begins_at: datetime
    requests: int
    first_tokens: int
    batch: bool = False
    fast: bool = False


def open_sessions(stage: Stage) -> None:
    """Open all sessions of the background, so that memories can name the session they were written in."""
    for chain, title, _ in _planned(stage):
        with moment_of(stage, chain.begins_at):
            stage.session(
                chain.sid,
                agent=chain.agent,
                user=chain.user,
                project=chain.project,
                title=title,
                at=chain.begins_at,
            )


def tell_background(stage: Stage) -> None:
    """Play the short conversations and the daily routines, then put all their usage into the ledger and diagnose it."""
    timeline = Timeline()
    reports: list[UsageReport] = []
    for chain, _, told in _planned(stage):
        timeline.at(chain.begins_at, partial(_play, stage, chain, told, reports))
    timeline.play(stage)
    sightings = [sighting for report in reports for sighting in sightings_of_report(report, stage.now)]
    record_usage(workspace=stage.workspace, sightings=sightings)
    diagnose_pending(workspace=stage.workspace)


Plan = tuple["Chain", str, dict[str, Any]]


def _planned(stage: Stage) -> list[Plan]:
    """Return every chain with its title and what was said; the same ones each time it is asked."""
    rng = random.Random(SEED)  # noqa: S311 - a story, not a secret
    plans: list[Plan] = []
    for number, told in enumerate(read_json_lines(stage.files / "conversations.jsonl")):
        begins_at = stage.morning(_day_of(stage, number), rng.uniform(5.5, 15.5))
        plans.append((_chain_of(rng, told, number, begins_at), told["title"], told))
    for routine in ROUTINES:
        # Early in a day, today's hour has not come: its moment is yesterday's then, which is there already.
        for at in sorted({stage.morning(day, routine.hour) for day in range(DAYS)}):
            plans.append(_routine(rng, routine, at))
    return plans


def _day_of(stage: Stage, number: int) -> int:
    """Spread conversations over the days, few of them on a weekend."""
    day = (number * 5) % DAYS
    is_weekend = stage.ago(day).weekday() >= 5
    return (day + 2) % DAYS if is_weekend and number % 4 else day


def _chain_of(rng: random.Random, told: dict[str, Any], number: int, begins_at: datetime) -> Chain:
    agent = told["agent"]
    model = UNPRICED_MODEL if number == 17 else MODELS[agent][number % 3]
    return Chain(
        sid=f"{agent}-{begins_at:%m%d}-{number:02d}",
        agent=agent,
        user=told["user"],
        project=told["project"],
        model=model,
        ttl="1h" if number % 3 == 0 else "5m",
        begins_at=begins_at,
        requests=rng.randint(14, 58),
        first_tokens=rng.randint(16_000, 42_000),
        batch=number % 13 == 5,
        fast=model == "claude-opus-5-5" and number % 11 == 0,
    )


def _routine(rng: random.Random, routine: Routine, at: datetime) -> Plan:
    share = WEEKEND_SHARE if at.weekday() >= 5 else 1
    count = max(4, round(routine.requests * share * rng.uniform(0.8, 1.25)))
    chain = Chain(
        sid=f"{routine.agent}-daily-{at:%m%d}",
        agent=routine.agent,
        user=routine.user,
        project=routine.project,
        model=routine.model,
        ttl="5m",
        begins_at=at,
        requests=count,
        first_tokens=rng.randint(24_000, 36_000),
    )
    told = {"ask": routine.ask, "say": routine.say.format(count=count // 3 + 1)}
    return chain, f"{routine.title}, {at:%d.%m.}", told


def _play(stage: Stage, chain: Chain, told: dict[str, Any], reports: list[UsageReport]) -> None:
    before = len(reports)
    reports.extend(reports_of(stage, chain))
    if len(reports) == before:
        return
    session = Session.objects.get(workspace=stage.workspace, sid=chain.sid)
    asked = GivenEvent("message", told["ask"], id=f"{chain.sid}-ask", role="user", occurred_at=chain.begins_at)
    ended_at = reports[-1].ended_at
    said = GivenEvent("message", told["say"], id=f"{chain.sid}-say", role="assistant", occurred_at=ended_at)
    append_events(session=session, events=[asked, said])


def reports_of(stage: Stage, chain: Chain) -> Iterator[UsageReport]:
    """Yield the responses of a chain; its prefix grows by what was said and read in each turn."""
    rng, at = stage.rng, chain.begins_at
    cached, total = 0, chain.first_tokens
    touched_at: datetime | None = None
    for number in range(chain.requests):
        alive = touched_at is not None and (at - touched_at).total_seconds() <= TTL_SECONDS[chain.ttl]
        broken = rng.choice(BREAKS) if cached and rng.random() < BREAK_SHARE else ""
        read = cached // 4 if broken else cached
        tokens = _counters(chain, total, read if alive else 0, rng.randint(3, 12), rng.randint(90, 1400))
        hit = tokens.cache_read > total // 2
        first_byte_at = at + timedelta(seconds=(0.6 if hit else 1.5) + total / (90_000 if hit else 22_000))
        ended_at = first_byte_at + timedelta(seconds=tokens.output / OUTPUT_TOKENS_A_SECOND)
        if ended_at >= stage.now:
            return
        yield UsageReport(
            model=chain.model,
            usage=_usage(chain, tokens),
            message_id=f"msg_demo_{chain.sid}_{number:04d}",
            started_at=at,
            first_byte_at=first_byte_at,
            ended_at=ended_at,
            session=chain.sid,
            agent=chain.agent,
            project=chain.project,
            user=chain.user,
            diagnostics={"cache_miss_reason": {"type": broken}} if broken else None,
        )
        cached, touched_at = total, at
        total = _grown(total + tokens.output + rng.randint(400, 5200))
        at = ended_at + timedelta(seconds=_pause(stage))


def _counters(chain: Chain, total: int, read: int, plain: int, output: int) -> Tokens:
    read = min(read, total - plain)
    written = total - plain - read
    long_lived = written if chain.ttl == "1h" else 0
    return Tokens(plain, written - long_lived, long_lived, read, output)


def _usage(chain: Chain, tokens: Tokens) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if chain.batch:
        more["service_tier"] = "batch"
    if chain.fast:
        more["speed"] = "fast"
    return usage_of(tokens, **more)


def _grown(total: int) -> int:
    """Compact a conversation that grew too long."""
    return total if total < 170_000 else 32_000


def _pause(stage: Stage) -> float:
    rng = stage.rng
    return rng.uniform(320, 2400) if rng.random() < PAUSE_SHARE else rng.uniform(2, 95)
