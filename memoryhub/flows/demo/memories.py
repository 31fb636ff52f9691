"""What the agents remember, and what people did with it: written, recalled, rated, edited, superseded, forgotten, reviewed."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from io import BytesIO
from itertools import groupby
from typing import Any

from memoryhub.flows.demo.content import StoryMemory, read_json, read_json_lines, read_memories
from memoryhub.flows.demo.stage import DAYS, Stage, Timeline, scope_of
from memoryhub.flows.import_memories import import_stream
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryState
from memoryhub.long_term_memory.queries.memories import MemoryFilter
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services.bulk import BulkAction, bulk_edit, rename_tag
from memoryhub.long_term_memory.services.decaying import run_decay
from memoryhub.long_term_memory.services.editing import edit_memory, supersede_memory
from memoryhub.long_term_memory.services.files import create_file
from memoryhub.long_term_memory.services.forgetting import forget_memory
from memoryhub.long_term_memory.services.recalling import rate_memory, recall_memories
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.writer import MemoryChanges, MemoryDraft, Writer
from memoryhub.workspaces.principals import job_principal

RECALLS_PER_QUERY = 5
MOST_AT_ONCE = 3  # memories that an agent stores in one write


def tell_memories(stage: Stage) -> None:
    """Play two weeks of the long-term layer."""
    timeline = Timeline()
    story = read_json(stage.files / "memory_stories.json")
    for told in _in_batches(read_memories(stage.files / "memories"), story):
        timeline.at(_written_at(stage, told[0]), partial(_remember_told, stage, told))
    _tell_imports(stage, timeline)
    _tell_edits(stage, timeline, story)
    _tell_additions(stage, timeline, story)
    _tell_recalls(stage, timeline, story)
    for day in range(DAYS - 1, -1, -1):
        timeline.at(stage.morning(day, 3.0), partial(_decay, stage))
    timeline.play(stage)


def _in_batches(told: list[StoryMemory], story: dict[str, Any]) -> Iterator[list[StoryMemory]]:
    """Yield what one write stores: up to three memories of a scope. What comes up again later is written early."""
    again = [entry["find"] for name in ("edits", "forget", "ratings") for entry in story[name]]
    again += [entry["about"] for entry in story["contradictions"]]
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


def _remember_told(stage: Stage, told: list[StoryMemory]) -> None:
    scope = told[0].scope
    drafts = [
        MemoryDraft(
            content=one.text,
            scope=scope,
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
    writer = stage.writer("ana", reason="The notes of the old assistant")
    writer = Writer(workspace=writer.workspace, actor=writer.actor, door="import", reason=writer.reason)
    lines = read_json_lines(stage.files / "old_notes.jsonl")
    for line in lines:
        for name in ("created_at", "last_accessed"):
            line[name] = stage.ago(float(line[name].strip("-d"))).strftime("%Y-%m-%dT%H:%M:%SZ")
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    timeline.at(
        stage.ago(DAYS - 1.5),
        lambda: import_stream(writer=writer, stream=BytesIO(text.encode()), format="seed"),
    )


# --- What people change ----------------------------------------------------------------------------------------------
def _tell_edits(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    for edit in story["edits"]:
        timeline.at(stage.ago(edit["days_ago"]), partial(_edit, stage, edit))
    for gone in story["forget"]:
        timeline.at(stage.ago(gone["days_ago"]), partial(_forget, stage, gone))
    for old in story["supersede"]:
        first, second = old["days_ago"]
        timeline.at(stage.ago(first), partial(_add, stage, {**old, "text": old["old"]}))
        timeline.at(stage.ago(second), partial(_supersede, stage, old))
    archive, rename = story["archive_tag"], story["rename_tag"]
    timeline.at(stage.ago(archive["days_ago"]), partial(_archive_tag, stage, archive))
    timeline.at(
        stage.ago(rename["days_ago"]),
        lambda: rename_tag(writer=stage.writer(rename["by"]), old=rename["old"], new=rename["new"]),
    )


def find_told(stage: Stage, text: str) -> Memory:
    """Return the memory of the story that begins with or holds this text."""
    rows = Memory.objects.filter(workspace=stage.workspace, content__contains=text).exclude(state=MemoryState.FORGOTTEN)
    return rows.order_by("id")[0]


def _edit(stage: Stage, edit: dict[str, Any]) -> None:
    memory = find_told(stage, edit["find"])
    given = {name: edit[name] for name in ("content", "importance", "add_tags") if name in edit}
    name = (memory.scope.agent or "ops") if edit["by"] == "agent" else edit["by"]
    writer = stage.writer(name, reason=edit["reason"])
    edit_memory(writer=writer, memory_id=memory.public_id, changes=MemoryChanges(**given))


def _forget(stage: Stage, gone: dict[str, Any]) -> None:
    writer = stage.writer(gone["by"], reason=gone["reason"])
    forget_memory(writer=writer, memory_id=find_told(stage, gone["find"]).public_id)


def _supersede(stage: Stage, old: dict[str, Any]) -> None:
    memory = find_told(stage, old["old"])
    draft = MemoryDraft(content=old["new"])
    supersede_memory(writer=stage.writer(old["by"]), memory_id=memory.public_id, draft=draft)


def _archive_tag(stage: Stage, archive: dict[str, Any]) -> None:
    writer = stage.writer(archive["by"], reason=archive["reason"])
    bulk_edit(writer=writer, wanted=MemoryFilter(tags=[archive["tag"]]), action=BulkAction(archive=True))


# --- What agents add, and what waits for a person --------------------------------------------------------------------
def _tell_additions(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    for group in ("near_duplicates", "contradictions", "suspicious", "secrets"):
        for told in story[group]:
            timeline.at(stage.ago(told["days_ago"]), partial(_add, stage, told))
    for file in story["files"]:
        timeline.at(stage.ago(file["days_ago"]), partial(_create_file, stage, file))


def _add(stage: Stage, told: dict[str, Any]) -> None:
    draft = MemoryDraft(
        content=told["text"],
        scope=scope_of(told["scope"]),
        importance=told["importance"],
        tags=told["tags"],
        session=told.get("session"),
    )
    remember(writer=stage.writer(told["scope"][0]), drafts=[draft])


def _create_file(stage: Stage, file: dict[str, Any]) -> None:
    create_file(
        writer=stage.writer(file["agent"]),
        scope=ScopeNames(agent=file["agent"]),
        path=file["path"],
        content=file["text"],
    )


# --- What is read again ----------------------------------------------------------------------------------------------
def _tell_recalls(stage: Stage, timeline: Timeline, story: dict[str, Any]) -> None:
    """Each question is asked a few times, mostly on working days; what comes back stays strong."""
    for agent, project, query in story["recalls"]:
        for _ in range(stage.rng.randint(2, RECALLS_PER_QUERY)):
            at = stage.morning(stage.rng.randint(0, DAYS - 2), stage.rng.uniform(6, 17))
            timeline.at(at, partial(_recall, stage, agent, project, query))
    for rating in story["ratings"]:
        for helpful in (True,) * rating["helpful"] + (False,) * rating["harmful"]:
            timeline.at(stage.ago(stage.rng.uniform(0.2, 6)), partial(_rate, stage, rating["find"], helpful))


def _recall(stage: Stage, agent: str, project: str, query: str) -> None:
    scope = ScopeNames(agent=agent, project=project)
    recall_memories(writer=stage.writer(agent), request=SearchRequest(query=query, scope=scope, limit=5))


def _rate(stage: Stage, text: str, helpful: bool) -> None:
    memory = find_told(stage, text)
    rate_memory(writer=stage.writer(memory.scope.agent or "ops"), memory_id=memory.public_id, helpful=helpful)


def _decay(stage: Stage) -> None:
    principal = job_principal(stage.workspace, "decay", "")
    run_decay(writer=Writer.of(principal, door="job"))
