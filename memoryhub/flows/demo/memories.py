"""What the agents remember: written, imported, recalled, rated, decaying, and what waits for a person."""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from io import BytesIO
from itertools import groupby
from typing import Any

from memoryhub.flows.demo.content import StoryMemory, read_json, read_json_lines, read_memories
from memoryhub.flows.demo.people import add, find_told, tell_people, texts_of
from memoryhub.flows.demo.stage import AGENTS, DAYS, Stage, Timeline, scope_of
from memoryhub.flows.import_memories import import_stream
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services.decaying import run_decay
from memoryhub.long_term_memory.services.files import create_file
from memoryhub.long_term_memory.services.recalling import rate_memory, recall_memories
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.reviewing import offer_candidates, offer_fading
from memoryhub.long_term_memory.services.writer import MemoryDraft, Writer
from memoryhub.workspaces.models import Session
from memoryhub.workspaces.principals import job_principal

RECALLS_PER_QUERY = 5
RECALL_LIMIT = 8
MOST_AT_ONCE = 3  # memories that an agent stores in one write
SESSION_REACH = timedelta(hours=30)  # a write belongs to the agent's last session, if that is not too long ago


def tell_memories(stage: Stage) -> None:
    """Play two weeks of the long-term layer."""
    timeline = Timeline()
    story = read_json(stage.files / "memory_stories.json")
    diary = Diary(stage)
    for told in _in_batches(read_memories(stage.files / "memories"), texts_of(story)):
        timeline.at(_written_at(stage, told[0]), partial(_remember_told, stage, diary, told))
    _tell_imports(stage, timeline)
    tell_people(stage, timeline, story)
    _tell_additions(stage, timeline, story)
    _tell_recalls(stage, timeline, story, diary)
    for day in range(DAYS - 1, -1, -1):
        timeline.at(stage.morning(day, 3.0), partial(_decay, stage))
    timeline.play(stage)


@dataclass
class Diary:
    """Which session an agent was in at a moment."""

    stage: Stage
    _sessions: dict[str, list[Session]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for agent in AGENTS:
            rows = Session.objects.filter(workspace=self.stage.workspace, agent__name=agent)
            self._sessions[agent] = list(rows.order_by("created_at", "id"))

    def session_at(self, agent: str | None, at: datetime) -> str | None:
        sessions = self._sessions.get(agent or "", [])
        place = bisect_right([session.created_at for session in sessions], at)
        if not place or at - sessions[place - 1].created_at > SESSION_REACH:
            return None
        return sessions[place - 1].sid


# --- What is written -------------------------------------------------------------------------------------------------
def _in_batches(told: list[StoryMemory], again: list[str]) -> Iterator[list[StoryMemory]]:
    """Yield what one write stores: up to three memories of a scope. What comes up again later is written early."""
    early = [replace(one, early=one.early or one.pinned or any(text in one.text for text in again)) for one in told]
    for _, group in groupby(early, key=lambda one: (one.scope, one.kind, one.early)):
        rest, size = list(group), 1
        while rest:
            yield rest[:size]
            rest, size = rest[size:], size % MOST_AT_ONCE + 1


def _written_at(stage: Stage, told: StoryMemory) -> datetime:
    """Spread the writes over the two weeks, the early ones over the first two days."""
    digest = hashlib.sha256(told.text.encode()).digest()
    share = int.from_bytes(digest[:4]) / 2**32
    return stage.ago(DAYS - 2 * share if told.early else (DAYS - 0.5) * (1 - share**0.8) + 0.1)


def _remember_told(stage: Stage, diary: Diary, told: list[StoryMemory]) -> None:
    scope = told[0].scope
    session = diary.session_at(scope.agent, _written_at(stage, told[0]))
    drafts = [
        MemoryDraft(
            content=one.text,
            scope=scope,
            session=session,
            kind=one.kind,
            importance=one.importance,
            tags=one.tags,
            pinned=one.pinned,
        )
        for one in told
    ]
    remember(writer=stage.writer(scope.agent or scope.user or "ops"), drafts=drafts)


def _tell_imports(stage: Stage, timeline: Timeline) -> None:
    """The notes that the team had before: one import with their own dates."""
    writer = Writer(
        workspace=stage.workspace, actor=stage.actor("ana"), door="import", reason="The notes of the old assistant"
    )
    lines = read_json_lines(stage.files / "old_notes.jsonl")
    for line in lines:
        for name in ("created_at", "last_accessed"):
            line[name] = stage.ago(float(line[name].strip("-d"))).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    timeline.at(
        stage.ago(DAYS - 1.5),
        lambda: import_stream(writer=writer, stream=BytesIO(text.encode()), format="seed"),
    )


def _tell_additions(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    """What raises a question: near duplicates, contradictions, planted instructions, candidates, strong memories that fade."""
    for group in ("near_duplicates", "contradictions", "suspicious", "secrets"):
        for told in story[group]:
            timeline.at(stage.ago(told["days_ago"]), partial(add, stage, told))
    for file in story["files"]:
        timeline.at(stage.ago(file["days_ago"]), partial(_create_file, stage, file))
    timeline.at(stage.ago(1.1), partial(_offer_candidates, stage, story["extracted"]))
    timeline.at(stage.ago(0.1), lambda: offer_fading(writer=_job_writer(stage, "decay")))


def _create_file(stage: Stage, file: dict[str, Any]) -> None:
    create_file(
        writer=stage.writer(file["agent"]),
        scope=ScopeNames(agent=file["agent"]),
        path=file["path"],
        content=file["text"],
    )


def _offer_candidates(stage: Stage, told: list[dict[str, Any]]) -> None:
    """What an extraction of two sessions proposed."""
    candidates = [
        {
            "content": one["text"],
            "kind": one["kind"],
            "importance": one["importance"],
            "tags": one["tags"],
            "subject": "",
            "event": None,
            "event_ids": [],
            "session": one["session"],
            "scope": scope_of(one["scope"]).named(),
        }
        for one in told
    ]
    offer_candidates(writer=_job_writer(stage, "extract"), candidates=candidates)


# --- What is read again ----------------------------------------------------------------------------------------------
def _tell_recalls(stage: Stage, timeline: Timeline, story: dict[str, Any], diary: Diary) -> None:
    """Each question is asked a few times; what comes back stays strong."""
    for agent, project, query in story["recalls"]:
        for _ in range(stage.rng.randint(2, RECALLS_PER_QUERY)):
            at = stage.morning(stage.rng.randint(0, DAYS - 2), stage.rng.uniform(6, 17))
            request = SearchRequest(query=query, scope=ScopeNames(agent=agent, project=project), limit=RECALL_LIMIT)
            timeline.at(at, partial(_recall, stage, agent, request, diary.session_at(agent, at)))
    for rating in story["ratings"]:
        for helpful in (True,) * rating["helpful"] + (False,) * rating["harmful"]:
            timeline.at(stage.ago(stage.rng.uniform(0.2, 6)), partial(_rate, stage, rating["find"], helpful))


def _recall(stage: Stage, agent: str, request: SearchRequest, session: str | None) -> None:
    recall_memories(writer=stage.writer(agent), request=request, session=session)


def _rate(stage: Stage, text: str, helpful: bool) -> None:
    memory = find_told(stage, text)
    rate_memory(writer=stage.writer(memory.scope.agent or "ops"), memory_id=memory.public_id, helpful=helpful)


def _decay(stage: Stage) -> None:
    run_decay(writer=_job_writer(stage, "decay"))


def _job_writer(stage: Stage, kind: str) -> Writer:
    return Writer.of(job_principal(stage.workspace, kind, ""), door="job")
