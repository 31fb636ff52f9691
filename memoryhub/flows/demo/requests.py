"""Requests of the story's agents: whole bodies, with counters as the provider would bill them.

The bodies are real Messages requests with the agent's instructions, tools, recalled memories and the conversation so far. What
was read and written is computed by the rules of the prompt cache, so the report, the doctor and the planner look at usage that
fits the bodies to the token.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memoryhub.flows.demo.content import read_json
from memoryhub.flows.demo.stage import Stage
from memoryhub.flows.demo.texts import source_text
from memoryhub.long_term_memory.domain.rendering import RenderedMemory, render
from memoryhub.long_term_memory.models import Memory, MemoryState, Trust
from memoryhub.prompt_cache.domain.pricing import Tokens
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.domain.request_body import read_prompt
from memoryhub.prompt_cache.domain.simulator import Cache, bill, shape_of
from memoryhub.prompt_cache.services.doctor import SentRequest
from memoryhub.workspaces.models import Session

MAP_LINES = 1800  # of the working copy that stand in an agent's instructions
RECALLED = 8  # memories that stand in an agent's instructions
OUTPUT_TOKENS_A_SECOND = 85
MAX_OUTPUT_TOKENS = 8192

Json = dict[str, Any]


def build_tools(stage: Stage, agent: str) -> list[Json]:
    """Return an agent's tool definitions."""
    known = read_json(stage.files / "agents" / "tools.json")
    names = read_json(stage.files / "agents" / "agents.json")[agent]["tools"]
    return [tool_definition(name, known[name]) for name in names]


def tool_definition(name: str, told: Mapping[str, Any]) -> Json:
    properties = {key: {"type": "string", "description": text} for key, text in told["properties"].items()}
    schema = {"type": "object", "properties": properties, "required": told["required"]}
    return {"name": name, "description": told["description"], "input_schema": schema}


def build_instructions(stage: Stage, agent: str) -> list[str]:
    """Return an agent's system texts: who it is, its working copy, what the project has written down, what it recalled."""
    about = (stage.files / "agents" / f"{agent}.md").read_text(encoding="utf-8")
    working_copy = source_text(f"the map of {agent}'s working copy", MAP_LINES)
    trusted = [row.content for row in _memories_of(stage, agent) if row.trust == Trust.TRUSTED]
    guide = "Notes of the project\n" + "".join(f"- {text}\n" for text in trusted)
    return [about, working_copy, guide, recalled_text(stage, agent)]


def recalled_text(stage: Stage, agent: str, skip: int = 0) -> str:
    """Return the agent's strongest memories as they stand in its instructions, after so many stronger ones."""
    best = sorted(_memories_of(stage, agent), key=lambda row: (-row.strength, row.pk))[skip : skip + RECALLED]
    return render([RenderedMemory(row.public_id, row.version, row.content, row.subject) for row in best])


def _memories_of(stage: Stage, agent: str) -> list[Memory]:
    rows = Memory.objects.filter(workspace=stage.workspace, scope__agent=agent, superseded_by=None, path=None)
    return list(rows.exclude(state=MemoryState.FORGOTTEN).order_by("id"))


@dataclass
class Request:
    """What the next request sends. Copies of it are the bodies; `ttl` is that of the marker behind the instructions."""

    model: str
    tools: list[Json]
    system: list[str]
    ttl: str
    messages: list[Json] = field(default_factory=list)
    extra: Json = field(default_factory=dict)
    marks_last: bool = True

    def body(self) -> Json:
        """Return the Messages request, with a marker behind the instructions and one at the end of the conversation."""
        system: list[Json] = [{"type": "text", "text": text} for text in self.system]
        system[-1]["cache_control"] = _marker(self.ttl)
        messages = json.loads(json.dumps(self.messages))
        if self.marks_last:
            _mark_end(messages)
        return {
            "model": self.model,
            "max_tokens": MAX_OUTPUT_TOKENS,
            "system": system,
            "tools": self.tools,
            "messages": messages,
            **self.extra,
        }


def _marker(ttl: str) -> Json:
    return {"type": "ephemeral", "ttl": ttl}


def _mark_end(messages: list[Json]) -> None:
    content = messages[-1]["content"]
    if isinstance(content, str):
        messages[-1]["content"] = content = [{"type": "text", "text": content}]
    content[-1]["cache_control"] = _marker("5m")


@dataclass(frozen=True, slots=True)
class Sent:
    """A response and the request behind it."""

    report: UsageReport
    request: SentRequest


@dataclass
class Counter:
    """Sends requests: computes what the provider would bill, and asks for its diagnostics as a client may."""

    stage: Stage
    cache: Cache = field(default_factory=dict)
    sent: int = 0
    latest: dict[str, str] = field(default_factory=dict)  # session and agent -> the message before

    def send(
        self,
        session: Session,
        agent: str,
        request: Request,
        at: datetime,
        output_tokens: int,
        reason: str | None = None,
    ) -> "Sent":
        """Return one response and its request; `reason` is what the provider's diagnostics say, "" that nothing changed."""
        self.sent += 1
        message_id = f"msg_demo_{session.sid}_{self.sent:04d}"
        before = self.latest.get(f"{session.sid} {agent}")
        self.latest[f"{session.sid} {agent}"] = message_id
        body = {**request.body(), "diagnostics": {"previous_message_id": before}}
        prompt = read_prompt(body)
        first_byte_at = at + self._first_byte_after(prompt.estimated_tokens)
        shape = shape_of(prompt, started_at=at, first_byte_at=first_byte_at, output_tokens=output_tokens)
        tokens = bill(shape, shape.markers, self.cache)
        if tokens.cache_read > shape.total_tokens // 2:  # a hit answers sooner
            first_byte_at = at + (first_byte_at - at) * 0.45
        report = UsageReport(
            model=request.model,
            usage=usage_of(tokens),
            message_id=message_id,
            request_id=f"req_demo_{self.sent:05d}",
            source="rest",
            started_at=at,
            first_byte_at=first_byte_at,
            ended_at=first_byte_at + timedelta(seconds=output_tokens / OUTPUT_TOKENS_A_SECOND),
            session=session.sid,
            agent=agent,
            project=session.project,
            user=session.user,
            diagnostics=_diagnostics(reason, tokens) if reason and before else None,
        )
        return Sent(report, SentRequest(message_id, body, answered_no_change=bool(before) and not reason))

    def _first_byte_after(self, tokens: int) -> timedelta:
        return timedelta(seconds=0.9 + tokens / 14_000 + self.stage.rng.uniform(0, 0.5))


def usage_of(tokens: Tokens, **more: Any) -> Json:
    """Return counters in the provider's own words."""
    written = {
        "ephemeral_5m_input_tokens": tokens.cache_write_5m,
        "ephemeral_1h_input_tokens": tokens.cache_write_1h,
    }
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_creation_input_tokens": sum(written.values()),
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": written,
        "service_tier": "standard",
        **more,
    }


def _diagnostics(reason: str, tokens: Tokens) -> Json:
    said: Json = {"type": reason}
    if reason.endswith("_changed"):
        said["cache_missed_input_tokens"] = round((tokens.cache_write_5m + tokens.cache_write_1h) * 1.04)
    return {"cache_miss_reason": said}


def rotated(tools: list[Json]) -> list[Json]:
    """Return the same tools in another order, as a client does that keeps them in a set."""
    return [*tools[2:], *tools[:2]]
