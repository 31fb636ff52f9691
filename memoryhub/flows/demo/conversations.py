"""The conversations that are told turn by turn: events with branches, requests with bodies, memories written on the way."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memoryhub.common.recall_marks import OPEN
from memoryhub.common.tokens import estimate_tokens
from memoryhub.flows.demo import requests as demo_requests
from memoryhub.flows.demo.content import read_conversations, read_json
from memoryhub.flows.demo.requests import Counter, Json, Request, Sent
from memoryhub.flows.demo.stage import Stage, Timeline, moment_of
from memoryhub.flows.demo.texts import prose_text, source_text
from memoryhub.flows.memory_price import note_carried_memories
from memoryhub.flows.rewind import rewind_session
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.writer import MemoryDraft
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session
from memoryhub.workspaces.models import Session

TOOL_SECONDS = 1.2
FAN_OUT_SECONDS = 0.15  # between helpers that are started together
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one grey pixel
)
# What the provider's diagnostics would say of each way in which the story breaks a prefix.
REASONS = {
    "reorder_tools": "tools_changed",
    "add_tool": "tools_changed",
    "recall_again": "system_changed",
    "switch_model": "model_changed",
    "edit_first_message": "messages_changed",
    "tool_choice": "unavailable",
    "raise_effort": "unavailable",
}


def open_conversations(stage: Stage) -> None:
    """Open the sessions, so that memories can name the session they were written in."""
    for told in read_conversations(stage.files / "sessions"):
        at = _begins_at(stage, told)
        with moment_of(stage, at):
            _open(stage, told, at)


def _open(stage: Stage, told: Json, at: datetime) -> Session:
    return stage.session(
        told["sid"], agent=told["agent"], user=told["user"], project=told["project"], title=told["title"], at=at
    )


def tell_conversations(stage: Stage) -> None:
    """Play the conversations in the order of time; each begins with its instructions."""
    told = read_conversations(stage.files / "sessions")
    counter = Counter(stage)
    conversations = [Conversation(stage, counter, one, _begins_at(stage, one)) for one in told]
    timeline = Timeline()
    for conversation in sorted(conversations, key=lambda one: one.at):
        timeline.at(conversation.at, conversation.play)
    timeline.play(stage)


def _begins_at(stage: Stage, told: Json) -> datetime:
    if "weekday" in told:
        return stage.last_weekday(told["weekday"], told["hour"])
    if "hours_ago" in told:
        return stage.ago(told["hours_ago"] / 24)
    return stage.morning(told["days_ago"], told["hour"])


@dataclass
class Conversation:
    """One conversation on its way through its turns. `at` is the moment at which it stands."""

    stage: Stage
    counter: Counter
    told: Json
    at: datetime
    events: list[GivenEvent] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    places: dict[str, list[Json]] = field(default_factory=dict)  # event id -> the messages up to it
    number: int = 0
    _before: dict[str, str] = field(default_factory=dict)  # event id -> the event that it hangs on
    _said: dict[str, str] = field(default_factory=dict)  # event id -> what the agent said
    _last: str = ""

    def play(self) -> None:
        """Say every turn, store what was said, and record the requests."""
        told = self.told
        self.session = _open(self.stage, told, self.at)
        self.request = self._first_request()
        who, *more = self.request.system
        recalled = [text for text in more if text.startswith(OPEN)]
        self._event("message", "\n\n".join([who, *recalled]), role="system")
        for turn in told["turns"]:
            self._turn(turn)
        self._flush()
        self._record()
        if "fork" in told:
            with moment_of(self.stage, self.at):
                self._fork(*told["fork"])

    def _record(self) -> None:
        """Record what was sent since the last time, and note which memories it carried while its body is kept."""
        with moment_of(self.stage, self.at):
            record_reports(
                workspace=self.stage.workspace,
                reports=[one.report for one in self.sent],
                requests=[one.request for one in self.sent],
            )
        note_carried_memories()
        self.sent = []

    def _first_request(self) -> Request:
        told = self.told
        system = demo_requests.build_instructions(self.stage, told["agent"])
        if told.get("short_prompt"):
            system = [system[0][:900]]
        tools = [] if told.get("short_prompt") else demo_requests.build_tools(self.stage, told["agent"])
        return Request(model=told["model"], tools=tools, system=system, ttl=told["ttl"])

    # --- one turn ----------------------------------------------------------------------------------------------------
    def _turn(self, turn: Json) -> None:
        self.at += timedelta(seconds=turn.get("wait", 0))
        if "rewind_to" in turn:
            self._rewind(turn["rewind_to"])
        if "compact" in turn:
            self._compact(turn["compact"])
        reason = self._mutate(turn)
        self._user(turn)
        if "fan_out" in turn:
            reason = self._fan_out(turn["fan_out"], reason)
        for call in turn.get("calls", ()):
            reason = self._call(call, reason)
        self._send(turn["say"], reason)
        if turn.get("mutate") == "recall_again":
            self._record()
        self._message("assistant", turn["say"])
        for text in turn.get("remember", ()):
            self._remember(text)

    def _mutate(self, turn: Json) -> str:
        """Break the prefix in the way that the turn tells, and return what the provider would say of it."""
        request, way = self.request, turn.get("mutate", "")
        request.extra.pop("tool_choice", None)
        if self.told.get("clock_in_system"):
            now = f"现在时间：{self.at:%Y-%m-%d %H:%M:%S} UTC"
            request.system = [f"{now}\n{_without_clock(request.system[0])}", *request.system[1:]]
            return "system_changed"
        if way == "reorder_tools":
            request.tools = demo_requests.rotated(request.tools)
        elif way == "add_tool":
            known = read_json(self.stage.files / "agents" / "tools.json")
            added = demo_requests.tool_definition("look_up_term", known["look_up_term"])
            request.tools = [*request.tools[:3], added, *request.tools[3:]]
        elif way == "recall_again":
            again = demo_requests.recalled_text(self.stage, self.told["agent"], skip=3)
            request.system = [*request.system[:-1], again]
        elif way == "switch_model":
            request.model = turn["model"]
        elif way == "tool_choice":
            request.extra["tool_choice"] = {"type": "none"}
        elif way == "raise_effort":
            request.extra["output_config"] = {"effort": "xhigh"}
        elif way == "edit_first_message":
            first = request.messages[0]
            first["content"] = [{"type": "text", "text": f"[ticket 7f3a1c52] {first['content'][0]['text']}"}]
        return REASONS.get(way, "")

    def _user(self, turn: Json) -> None:
        text = turn["user"]
        blocks: list[Json] = [{"type": "text", "text": text}]
        if turn.get("image"):
            blocks.append(_image())
        self.request.messages.append({"role": "user", "content": blocks})
        event_id = self._event("message", blocks if turn.get("image") else text, role="user", id=turn.get("id"))
        if turn.get("id"):
            self.places[event_id] = [dict(message) for message in self.request.messages[:-1]]

    def _call(self, call: Json, reason: str) -> str:
        """One tool call: the request that asks for it, its result, both as events."""
        call_id = f"toolu_{self.session.sid}_{self.number}"
        use = {"type": "tool_use", "id": call_id, "name": call["tool"], "input": call["params"]}
        self._send(str(call["params"]), reason)
        self.request.messages.append({"role": "assistant", "content": [use]})
        self._event("tool_use", use, role="assistant")
        self.at += timedelta(seconds=TOOL_SECONDS)
        content: list[Json] = [_image()] if call.get("image") else [{"type": "text", "text": self._result(call)}]
        result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        self.request.messages.append({"role": "user", "content": [result]})
        self._event("tool_result", result, role="user")
        return ""

    def _result(self, call: Json) -> str:
        if "code" in call:
            return source_text(*call["code"])
        if "prose" in call:
            return prose_text(self._sentences(), call["prose"], str(call["params"]))
        return str(call["text"])

    def _sentences(self) -> list[str]:
        rows = Memory.objects.filter(workspace=self.stage.workspace, scope__agent="writer", path=None)
        is_chinese = self.told["user"] == "李明"
        return [text for text in rows.order_by("id").values_list("content", flat=True) if text.isascii() != is_chinese]

    def _fan_out(self, questions: list[str], reason: str) -> str:
        """Start helpers together: they share a prefix, and all of them pay for writing it."""
        self._send(" ".join(questions), reason)
        calls = [
            {"type": "tool_use", "id": f"toolu_{self.session.sid}_x{n}", "name": "explore", "input": {"question": text}}
            for n, text in enumerate(questions)
        ]
        self.request.messages.append({"role": "assistant", "content": calls})
        for call in calls:
            self._event("tool_use", call, role="assistant")
        brief = f"{source_text('the map of the working copy', 160)}\nAnswer in at most five lines."
        for number, question in enumerate(questions):
            blocks = [
                {"type": "text", "text": brief, "cache_control": {"type": "ephemeral", "ttl": "5m"}},
                {"type": "text", "text": question},
            ]
            helper = Request(
                model=self.request.model,
                tools=demo_requests.build_tools(self.stage, "explorer"),
                system=["You explore a working copy and answer one question. You change nothing."],
                ttl="5m",
                messages=[{"role": "user", "content": blocks}],
                marks_last=False,
            )
            at = self.at + timedelta(seconds=FAN_OUT_SECONDS * number)
            self.sent.append(self.counter.send(self.session, "explorer", helper, at, 140))
        self.at += timedelta(seconds=12)
        results = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": [{"type": "text", "text": "No import found."}],
            }
            for call in calls
        ]
        self.request.messages.append({"role": "user", "content": results})
        for result in results:
            self._event("tool_result", result, role="user")
        return ""

    # --- where the conversation stands -------------------------------------------------------------------------------
    def _rewind(self, event_id: str) -> None:
        """Go back to before an event of the person's: what came after it stays in a branch of its own."""
        before = self._flush()[event_id]
        with moment_of(self.stage, self.at):
            rewind_session(session=self.session, to=before)
        self.request.messages = [dict(message) for message in self.places[event_id]]

    def _compact(self, summary: str) -> None:
        blocks = [{"type": "text", "text": f"The conversation so far, in short: {summary}"}]
        self.request.messages = [{"role": "user", "content": blocks}]
        self._event("compaction", blocks[0]["text"], role="user")

    def _fork(self, sid: str, turn: int) -> None:
        """Another session goes on from the end of a turn, with a question of its own."""
        at = list(self._said)[turn - 1]
        forked = fork_session(workspace=self.stage.workspace, session=self.session, at=at, sid=sid)
        self.stage.session(
            sid,
            agent=self.told["agent"],
            user=self.told["user"],
            project=self.told["project"],
            title=f"{self.told['title']}: a shorter version",
            at=self.at,
        )
        question = GivenEvent("message", "Now the same article in 200 words, for the newsletter.", role="user")
        answer = GivenEvent("message", "Here it is, 198 words, with a link to the full article.", role="assistant")
        append_events(session=forked, events=[question, answer])

    def _remember(self, text: str) -> None:
        last = self._flush_and_get_last()
        told = self.told
        draft = MemoryDraft(
            content=text,
            scope=ScopeNames(agent=told["agent"], project=told["project"]),
            session=told["sid"],
            event=last,
            kind="episodic",
            importance=0.6,
            tags=["session"],
        )
        with moment_of(self.stage, self.at):
            remember(writer=self.stage.writer(told["agent"], session=self.session), drafts=[draft])

    # --- storing -----------------------------------------------------------------------------------------------------
    def _send(self, answer: str, reason: str) -> None:
        output = 60 + 3 * estimate_tokens(answer)
        sent = self.counter.send(self.session, self.told["agent"], self.request, self.at, output, reason)
        self.sent.append(sent)
        self.at = sent.report.ended_at or self.at

    def _message(self, role: str, text: str) -> None:
        self.request.messages.append({"role": role, "content": [{"type": "text", "text": text}]})
        self._said[self._event("message", text, role=role)] = text

    def _event(self, kind: str, content: Any, *, role: str, id: str | None = None) -> str:
        self.number += 1
        event_id = id or f"{self.session.sid}-{self.number:03d}"
        self.events.append(GivenEvent(kind, content, id=event_id, role=role, occurred_at=self.at))
        return event_id

    def _flush(self) -> dict[str, str]:
        """Append what was said since the last time and return which event stands before each."""
        if self.events:
            with moment_of(self.stage, self.at):
                placed = append_events(session=self.session, events=self.events)
            self._before |= {item.id: item.parent_id or "" for item in placed.items}
            self._last = placed.head or ""
            self.events = []
        return self._before

    def _flush_and_get_last(self) -> str:
        self._flush()
        return self._last


def _without_clock(text: str) -> str:
    return text.split("\n", 1)[1] if text.startswith("现在时间") else text


def _image() -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
