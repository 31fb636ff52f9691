"""Reading the lines of a Claude Code transcript (JSON Lines) for what they say about usage.

A file is read front to back with a small `FileMemory`, which also lets a later reading go on where the last one stopped.
Unknown kinds of lines are skipped; a line that can't be understood raises LineError and the file goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from memoryhub.prompt_cache.domain.model_ids import UNKNOWN_MODEL, normalise_model
from memoryhub.prompt_cache.domain.sightings import TRANSCRIPT, Place, Sighting
from memoryhub.prompt_cache.domain.usage import Stated, Usage, UsageError, read_usage

SYNTHETIC_MODEL = "<synthetic>"
MAIN_AGENT = "main"
LONGEST_NAME = 500
_LONGEST_KEY = 200
_LONGEST_DIAGNOSTICS_BYTES = 10_000


class LineError(ValueError):
    """A line that can't be imported, with the reason in plain words."""


@dataclass(slots=True)
class FileMemory:
    """What earlier lines of a file say about later ones; kept with the file's read position."""

    first_timestamp: str = ""
    timestamp: str = ""
    cwd: str = ""
    session: str = ""
    asked_at: str = ""

    def to_json(self) -> dict[str, str]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> FileMemory:
        return cls(**{name: str(data.get(name, "")) for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class TranscriptSource:
    """Which file the lines come from. `agent` is the sub-agent's type where its meta file names one."""

    path: str
    stem: str
    agent: str = ""


@dataclass(slots=True)
class _Response:
    """What the lines of one response say; they follow one another, so most are joined before a sighting is made of them."""

    signature: tuple[Any, ...]
    key: str
    model: str
    usage: Usage
    stated: Stated
    request_id: str
    place: Place
    sidechain: bool
    first_at: datetime
    last_at: datetime
    asked_at: datetime | None
    diagnostics: Any

    def join(self, other: _Response) -> None:
        self.stated = self.stated.joined(other.stated)
        self.first_at, self.last_at = min(self.first_at, other.first_at), max(self.last_at, other.last_at)
        if self.diagnostics is None:
            self.diagnostics = other.diagnostics


@dataclass(slots=True)
class UsageReader:
    """Turns the lines of one file into sightings: feed it every line, and finish."""

    source: TranscriptSource
    memory: FileMemory = field(default_factory=FileMemory)
    _waiting: _Response | None = None
    _waiting_marks: tuple[Any, ...] = ()
    _known_credit: str = ""

    def read(self, entry: Any) -> list[Sighting]:
        """Read a parsed line; returns the sightings of a response that is complete now. Lines without billed usage say nothing."""
        if not isinstance(entry, dict):
            raise LineError("is not a JSON object")
        self._remember(entry)
        kind = entry.get("type")
        if kind == "user":
            self.memory.asked_at = self.memory.timestamp
        if kind != "assistant" or entry.get("isApiErrorMessage"):
            return []
        message = entry.get("message")
        if not isinstance(message, dict) or not message.get("usage"):
            return []
        model = message.get("model")
        if model == SYNTHETIC_MODEL:
            return []
        marks = self._marks(entry, message)
        if self._repeats_the_last(marks, message):
            return []
        taken = self._take(self._response(entry, message, _text(model) or UNKNOWN_MODEL))
        self._waiting_marks = marks
        return taken

    def _marks(self, entry: dict[str, Any], message: dict[str, Any]) -> tuple[Any, ...]:
        """All that a response is made of, as it stands in the line, but for its time and diagnosis."""
        get = entry.get
        return (
            message["usage"],
            message.get("id"),
            message.get("model"),
            get("requestId"),
            get("uuid") if not message.get("id") else None,
            get("isSidechain") is True,
            get("agentId"),
            get("attributionAgent"),
            self.memory.session,
            self.memory.cwd,
        )

    def _repeats_the_last(self, marks: tuple[Any, ...], message: dict[str, Any]) -> bool:
        """Take in a line that says of the waiting response what the line before said; most lines with usage are such."""
        waiting = self._waiting
        if waiting is None or len(waiting.usage.parts) != 1 or marks != self._waiting_marks:
            return False
        at = _moment(self.memory.timestamp)
        if at is None:
            return False
        waiting.first_at, waiting.last_at = min(waiting.first_at, at), max(waiting.last_at, at)
        if waiting.diagnostics is None:
            waiting.diagnostics = _diagnostics(message)
        return True

    def finish(self) -> list[Sighting]:
        """The sightings of the last response."""
        waiting, self._waiting = self._waiting, None
        return list(self._sightings(waiting)) if waiting else []

    def _take(self, response: _Response) -> list[Sighting]:
        waiting = self._waiting
        if waiting is not None and waiting.signature == response.signature and len(response.usage.parts) == 1:
            waiting.join(response)
            return []
        finished = self.finish()
        self._waiting = response
        return finished

    def _remember(self, entry: dict[str, Any]) -> None:
        memory = self.memory
        timestamp = entry.get("timestamp")
        if type(timestamp) is str and timestamp:
            memory.timestamp = timestamp
            if not memory.first_timestamp:
                memory.first_timestamp = timestamp
        cwd, session = entry.get("cwd"), entry.get("sessionId")
        if cwd != memory.cwd:
            memory.cwd = _text(cwd) or memory.cwd
        if session != memory.session:
            memory.session = _text(session) or memory.session

    def _response(self, entry: dict[str, Any], message: dict[str, Any], model: str) -> _Response:
        request_id = _text(entry.get("requestId"))
        key = _text(message.get("id")) or request_id or _text(entry.get("uuid"))
        if not key or len(key) > _LONGEST_KEY:
            raise LineError("has usage but neither a message id, a request id nor a uuid")
        try:
            usage = read_usage(message["usage"], "anthropic")
        except UsageError as error:
            raise LineError(str(error)) from None
        at = _moment(self.memory.timestamp)
        if at is None:
            raise LineError("has usage but no readable timestamp")
        sidechain = entry.get("isSidechain") is True
        place = self._place(entry, sidechain)
        modifiers = (usage.service_tier, usage.speed, usage.inference_geo, len(usage.parts))
        return _Response(
            signature=(key, request_id, model, sidechain, place, modifiers),
            key=key,
            model=model,
            usage=usage,
            stated=usage.parts[0].stated,
            request_id=request_id[:_LONGEST_KEY],
            place=place,
            sidechain=sidechain,
            first_at=at,
            last_at=at,
            asked_at=self._asked_at(at),
            diagnostics=_diagnostics(message),
        )

    def _sightings(self, response: _Response) -> Iterator[Sighting]:
        usage = response.usage
        for part in usage.parts:
            own = normalise_model(part.model or response.model)
            yield Sighting(
                key=response.key,
                part=part.index,
                kind=part.kind,
                source=TRANSCRIPT,
                model=own.name[:_LONGEST_KEY],
                region=own.region,
                stated=part.stated if part.index else response.stated,
                occurred_at=response.first_at,
                started_at=response.asked_at,
                ended_at=response.last_at,
                service_tier=usage.service_tier,
                speed=_speed_of(part.kind, usage),
                inference_geo=usage.inference_geo,
                request_id=response.request_id,
                place=response.place,
                diagnostics=None if part.index else response.diagnostics,
                sidechain=response.sidechain,
                credit=self._credit(),
            )

    def _credit(self) -> str:
        if not self._known_credit:
            self._known_credit = f"{_credited_time(self.memory.first_timestamp)}|{self.source.path}"
        return self._known_credit

    def _asked_at(self, occurred_at: datetime) -> datetime | None:
        """When the request began: the line before it. Assistant lines carry the time at which they ended."""
        asked_at = _moment(self.memory.asked_at)
        return asked_at if asked_at and asked_at <= occurred_at else None

    def _place(self, entry: dict[str, Any], sidechain: bool) -> Place:
        session = self.memory.session or self.source.stem
        agent_id = _text(entry.get("agentId"))
        if not sidechain and not agent_id and not self.source.stem.startswith("agent-"):
            agent, chain = MAIN_AGENT, session
        else:
            agent = _text(entry.get("attributionAgent")) or self.source.agent or "subagent"
            chain = f"{session}/{agent_id or (self.source.stem if self.source.stem != session else 'side')}"
        return Place(
            session=session[:_LONGEST_KEY],
            project=self.memory.cwd[:LONGEST_NAME],
            agent=agent[:_LONGEST_KEY],
            chain=chain[:LONGEST_NAME],
        )


def _diagnostics(message: dict[str, Any]) -> dict[str, Any] | None:
    """The provider's own diagnosis, if it is one that every database can hold."""
    found = message.get("diagnostics")
    if not isinstance(found, dict):
        return None
    try:
        text = orjson.dumps(found)
    except (TypeError, ValueError):
        return None
    return found if len(text) <= _LONGEST_DIAGNOSTICS_BYTES and b"\\u0000" not in text else None


def _speed_of(kind: str, usage: Usage) -> str:
    """Speed is asked of the model that answers; an advisor runs at its own."""
    return "" if kind == "advisor_message" else usage.speed


def _text(value: Any) -> str:
    """A trimmed text that every database can hold: without NUL, and with whole characters only."""
    if type(value) is not str:
        return ""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return value.replace("\x00", "").strip()


def _credited_time(timestamp: str) -> str:
    """A file's first timestamp in a form that sorts; a file without one comes last."""
    moment = _moment(timestamp)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") if moment else "~"


def _moment(text: str) -> datetime | None:
    """An aware UTC datetime, or None where the text is no time. Times without a zone are UTC."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_line(line: bytes) -> Any:
    """One line of JSON. Lone surrogates, which JavaScript writes where it cuts an emoji, are allowed."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as strict:
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            raise LineError(f"is not valid JSON ({_where(strict)})") from None


def _where(error: orjson.JSONDecodeError) -> str:
    return f"{error.msg.split(':')[0]} at column {error.colno}"
