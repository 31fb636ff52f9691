"""`hub.prompt_cache`: what the provider's prompt cache cost and saved."""

import functools
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from memoryhub.client.http import Connection
from memoryhub.client.spool import UsageSender

logger = logging.getLogger("memoryhub.client")
_REQUEST_PARTS = (
    "model", "system", "tools", "messages", "tool_choice", "thinking", "max_tokens", "cache_control", "stream",
    "speed", "service_tier", "output_config", "context_management", "diagnostics", "betas", "metadata",
)  # fmt: skip


class PromptCache:
    """Usage of model calls: recorded by `track`, or by hand."""

    def __init__(self, connection: Connection, sender: UsageSender, *, session: str | None) -> None:
        self._connection = connection
        self._sender = sender
        self._session = session

    def track(
        self,
        client: Any,
        *,
        session: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        user: str | None = None,
        requests: bool = True,
    ) -> Any:
        """Record usage of every `messages.create` and `messages.stream` of an anthropic client, and return the client.

        Recording happens in a thread of its own after the answer is there: it never delays a call and never raises into
        it. With `requests` the hub also gets the requests, to say why one missed the cache; it keeps hashes of them.
        """
        place = {"session": session or self._session, "agent": agent, "project": project, "user": user}
        recorder = _Recorder(self._sender, {name: value for name, value in place.items() if value}, requests)
        for messages in (client.messages, getattr(getattr(client, "beta", None), "messages", None)):
            if messages is not None:
                _wrap(messages, recorder)
        return client

    def record(self, usage: Mapping[str, Any]) -> None:
        """Hand over one usage record as the hub's API takes it; it is sent in the background, and kept while it can't be."""
        record = dict(usage)
        if self._session:
            record.setdefault("session", self._session)
        self._sender.send(record)

    def report(self, **query: Any) -> dict[str, Any]:
        """Return the cost report: `from_`, `to`, `tz`, `group_by`."""
        sent = {name.rstrip("_"): value for name, value in query.items()}
        return cast("dict[str, Any]", self._connection.request("GET", "/prompt-cache/report", query=sent).body)

    def diagnose(self, previous: Mapping[str, Any], current: Mapping[str, Any]) -> dict[str, Any]:
        """Say why a request missed the cache that the one before it had written."""
        body = {"previous": dict(previous), "current": dict(current)}
        return cast("dict[str, Any]", self._connection.request("POST", "/prompt-cache/diagnose", body).body)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until every record is sent or on disk."""
        return self._sender.flush(timeout_seconds)


class _Recorder:
    """Turns one response into one record."""

    def __init__(self, sender: UsageSender, place: dict[str, str], with_requests: bool) -> None:
        self._sender = sender
        self._place = place
        self._with_requests = with_requests

    def record(
        self,
        message: Any,
        request: Mapping[str, Any],
        started_at: datetime,
        first_at: datetime | None,
        *,
        cut: bool = False,
    ) -> None:
        """Record an answer, or with `cut` as much of it as came; whatever goes wrong here stays here."""
        try:
            usage = _plain(getattr(message, "usage", None))
            if not usage:
                return
            record: dict[str, Any] = {
                "message_id": getattr(message, "id", "") or "",
                "request_id": getattr(message, "_request_id", None) or "",
                "model": getattr(message, "model", "") or str(request.get("model", "")),
                "started_at": _stamp(started_at),
                "first_byte_at": _stamp(first_at) if first_at else None,
                "ended_at": _stamp(datetime.now(UTC)),
                "convention": "anthropic",
                "usage": usage,
                "diagnostics": _plain(getattr(message, "diagnostics", None)),
                "source": "track",
                **self._place,
            }
            if cut:
                record["cut"] = True
            if self._with_requests:
                record["request"] = {name: _plain(request[name]) for name in _REQUEST_PARTS if _is_given(request, name)}
            self._sender.send(record)
        except Exception as error:
            logger.warning("usage could not be recorded: %s", error)


def _is_given(request: Mapping[str, Any], name: str) -> bool:
    return name in request and type(request[name]).__name__ not in ("NotGiven", "Omit")


def _stamp(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _plain(value: Any) -> Any:
    """Return SDK objects as plain JSON types."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _wrap(messages: Any, recorder: _Recorder) -> None:
    if getattr(messages, "_memoryhub_tracked", False):
        return
    create, stream = messages.create, getattr(messages, "stream", None)
    is_async = type(messages).__name__.startswith("Async")
    messages.create = _async_create(create, recorder) if is_async else _plain_create(create, recorder)
    if stream is not None:
        messages.stream = _tracked_stream(stream, recorder, is_async=is_async)
    messages._memoryhub_tracked = True


def _plain_create(create: Callable[..., Any], recorder: _Recorder) -> Callable[..., Any]:
    @functools.wraps(create)
    def tracked(*args: Any, **kwargs: Any) -> Any:
        started_at = datetime.now(UTC)
        answer = create(*args, **kwargs)
        if kwargs.get("stream") is True:
            return _StreamWatch(answer, recorder, kwargs, started_at)
        recorder.record(answer, kwargs, started_at, None)
        return answer

    return tracked


def _async_create(create: Callable[..., Any], recorder: _Recorder) -> Callable[..., Any]:
    @functools.wraps(create)
    async def tracked(*args: Any, **kwargs: Any) -> Any:
        started_at = datetime.now(UTC)
        answer = await create(*args, **kwargs)
        if kwargs.get("stream") is True:
            return _StreamWatch(answer, recorder, kwargs, started_at)
        recorder.record(answer, kwargs, started_at, None)
        return answer

    return tracked


class _Message:
    """What a raw stream tells about its message: the start, then cumulative usage."""

    def __init__(self, start: Any) -> None:
        self.id = getattr(start, "id", "")
        self.model = getattr(start, "model", "")
        self.diagnostics = getattr(start, "diagnostics", None)
        self.is_whole = False
        self.usage: dict[str, Any] = _plain(getattr(start, "usage", None)) or {}

    def update(self, usage: Any) -> None:
        """Take the last word: deltas are cumulative and must not be added; fields that they lack stay."""
        for name, value in (_plain(usage) or {}).items():
            if value is not None:
                self.usage[name] = value


class _StreamWatch:
    """Passes a raw stream on unchanged, and records its usage when it ends, however it ends."""

    def __init__(self, stream: Any, recorder: _Recorder, request: Mapping[str, Any], started_at: datetime) -> None:
        self._stream = stream
        self._recorder = recorder
        self._request = request
        self._started_at = started_at
        self._first_at: datetime | None = None
        self._message: _Message | None = None
        self._is_recorded = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _see(self, event: Any) -> None:
        kind = getattr(event, "type", "")
        if kind == "message_start":
            self._first_at = datetime.now(UTC)
            self._message = _Message(event.message)
        elif kind == "message_delta" and self._message is not None:
            self._message.update(getattr(event, "usage", None))
        elif kind == "message_stop" and self._message is not None:
            self._message.is_whole = True

    def _end(self) -> None:
        if self._message is not None and not self._is_recorded:
            self._is_recorded = True
            message = self._message
            self._recorder.record(message, self._request, self._started_at, self._first_at, cut=not message.is_whole)

    def __iter__(self) -> Any:
        try:
            for event in self._stream:
                self._see(event)
                yield event
        finally:
            self._end()

    async def __aiter__(self) -> Any:
        try:
            async for event in self._stream:
                self._see(event)
                yield event
        finally:
            self._end()

    def __enter__(self) -> Any:
        self._stream.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._end()
        self._stream.__exit__(*exc)

    async def __aenter__(self) -> Any:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc: Any) -> None:
        self._end()
        await self._stream.__aexit__(*exc)


def _tracked_stream(stream: Callable[..., Any], recorder: _Recorder, *, is_async: bool) -> Callable[..., Any]:
    watch = _AsyncManagerWatch if is_async else _ManagerWatch

    @functools.wraps(stream)
    def tracked(*args: Any, **kwargs: Any) -> Any:
        return watch(stream(*args, **kwargs), recorder, kwargs)

    return tracked


class _Managed:
    """Holds what both kinds of stream managers share."""

    def __init__(self, manager: Any, recorder: _Recorder, request: Mapping[str, Any]) -> None:
        self._manager = manager
        self._recorder = recorder
        self._request = request
        self._started_at = datetime.now(UTC)
        self._stream: Any = None
        self._first_at: datetime | None = None

    def _record(self) -> None:
        try:
            snapshot = self._stream.current_message_snapshot
        except Exception:
            return
        cut = getattr(snapshot, "stop_reason", None) is None  # it comes with the last usage
        self._recorder.record(snapshot, self._request, self._started_at, self._first_at, cut=cut)


class _ManagerWatch(_Managed):
    def __enter__(self) -> Any:
        self._stream = self._manager.__enter__()
        self._first_at = datetime.now(UTC)
        return self._stream

    def __exit__(self, *exc: Any) -> Any:
        self._record()
        return self._manager.__exit__(*exc)


class _AsyncManagerWatch(_Managed):
    async def __aenter__(self) -> Any:
        self._stream = await self._manager.__aenter__()
        self._first_at = datetime.now(UTC)
        return self._stream

    async def __aexit__(self, *exc: Any) -> Any:
        self._record()
        return await self._manager.__aexit__(*exc)
