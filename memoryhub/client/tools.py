"""`hub.tools`: run a tool once for the same parameters, with the hub as the shared memory of what it answered."""

import asyncio
import functools
import inspect
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar, cast, overload
from urllib.parse import quote

from memoryhub.client.cached_function import CachedFunction
from memoryhub.client.calls import CacheOptions, CallShape, version_of
from memoryhub.client.encoding import Uncacheable, decode, dumps, encode
from memoryhub.client.errors import Forbidden, HubError, HubUnreachable, NotFound, Unauthenticated
from memoryhub.client.fingerprints import Depends, Look, Unseen, look_at_file, take_look
from memoryhub.client.front import FrontCache, FrontEntry
from memoryhub.client.http import Connection
from memoryhub.client.leases import LEASE_SECONDS, LeaseKeeper
from memoryhub.client.outcomes import Hit, Run, ToolAnswer, Wait
from memoryhub.client.stream import InvalidationListener

logger = logging.getLogger("memoryhub.client")
P = ParamSpec("P")
R = TypeVar("R")
FIRST_BREAK_SECONDS = 1.0  # how long the hub is left alone after it did not answer
LAST_BREAK_SECONDS = 30.0


class Tools:
    """Tool results of one session. Safe to share between threads."""

    def __init__(self, connection: Connection, *, session: str | None, root: str | os.PathLike[str] | None) -> None:
        self._connection = connection
        self._session = session
        self._root = os.fspath(root) if root is not None else os.getcwd()
        self.front = FrontCache()
        self._listener = InvalidationListener(connection, self.front)
        self._keeper = LeaseKeeper(self._renew)
        self._declared: set[str] = set()
        self._front_hits: dict[str, int] = {}
        self._lock = threading.Lock()
        self._resume_at = 0.0
        self._break_seconds = FIRST_BREAK_SECONDS
        self._warned = False

    # --- Decorators ---------------------------------------------------------------------------------------------------

    @overload
    def cached(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def cached(
        self,
        function: None = None,
        /,
        *,
        ttl: float | None = ...,
        depends_on: Iterable[Depends] = ...,
        name: str | None = ...,
        version: str | None = ...,
        scope: str = ...,
        session: str | None = ...,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def cached(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        ttl: float | None = 600,
        depends_on: Iterable[Depends] = (),
        name: str | None = None,
        version: str | None = None,
        scope: str = "session",
        session: str | None = None,
    ) -> Any:
        """Run the function once for the same arguments; plain functions, async ones and methods.

        Only for tools that change nothing. `depends_on=files("path")` ties a result to the files that it is made of.
        The policy that the hub has for the tool wins; where it has none, this declares one. When the hub is down, the
        function just runs. A method's object is no part of the key unless it has `memoryhub_key`.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            options = CacheOptions(
                tool=name or function.__qualname__.rsplit("<locals>.", 1)[-1],
                ttl_seconds=ttl,
                depends_on=tuple(depends_on),
                version=version_of(function) if version is None else version,
                scope=scope,
                session=session,
                root=self._root,
            )
            return CachedFunction(self, function, options).as_function()

        return decorate if function is None else decorate(function)

    def writes(
        self, *invalidates: str, name: str | None = None, session: str | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Mark a function that changes something: each run, a failing one too, invalidates the tools and tags named.

        Without a name it may change anything (a shell, say): results from before a run have to prove their files.
        """

        def decorate(function: Callable[P, R]) -> Callable[P, R]:
            tool = name or function.__qualname__.rsplit("<locals>.", 1)[-1]
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def run_async(*args: P.args, **kwargs: P.kwargs) -> Any:
                    failed = True
                    try:
                        value = await cast("Awaitable[Any]", function(*args, **kwargs))
                        failed = False
                        return value
                    finally:
                        await asyncio.to_thread(self._announce_run, tool, invalidates, session, failed)

                return cast("Callable[P, R]", run_async)

            @functools.wraps(function)
            def run(*args: P.args, **kwargs: P.kwargs) -> R:
                failed = True
                try:
                    value = function(*args, **kwargs)
                    failed = False
                    return value
                finally:
                    self._announce_run(tool, invalidates, session, failed)

            return run

        return decorate

    # --- By hand ------------------------------------------------------------------------------------------------------

    def look_up(self, tool: str, params: Any = None, *, session: str | None = None, **options: Any) -> ToolAnswer:
        """Look a result up; `options` are those of the hub's API (fingerprints, lease, max_age_seconds, ...)."""
        body = {"tool": tool, "params": encode(params), **options}
        answer = self._connection.request("POST", f"{self._path(session)}/lookup", body).body
        return ToolAnswer(answer["state"], decode(answer.get("value")), answer.get("reason", ""), answer)

    def put(self, tool: str, params: Any, value: Any, *, session: str | None = None, **options: Any) -> dict[str, Any]:
        """Store a result; what can't be stored answers `{"stored": False, "reason": "uncacheable"}`."""
        try:
            body = {"tool": tool, "params": encode(params), "value": encode(value), **options}
            dumps(body)
        except (Uncacheable, ValueError):
            return {"stored": False, "reason": "uncacheable"}
        return cast("dict[str, Any]", self._connection.request("PUT", self._path(session), body).body)

    def invalidate(self, *, reason: str = "", dry_run: bool = False, **selector: Any) -> dict[str, Any]:
        """Invalidate by session, tool (exact or a glob), params, key, tag, path or event; at least one of them."""
        body = {**selector, "reason": reason, "dry_run": dry_run}
        answer = self._connection.request("POST", "/invalidations", body).body
        if not dry_run:
            self.front.announce({name: value for name, value in selector.items() if name not in ("params", "event")})
        return cast("dict[str, Any]", answer)

    def set_policy(self, tool: str, **policy: Any) -> dict[str, Any]:
        """Set a tool's policy; see the hub's API for its fields."""
        self._declared.add(tool)
        return cast("dict[str, Any]", self._connection.request("PUT", f"/tool-policies/{tool}", policy).body)

    def stats(self, *, session: str | None = None) -> dict[str, Any]:
        """Return a session's hits, misses, time saved and bytes, in all and by tool."""
        return cast("dict[str, Any]", self._connection.request("GET", f"{self._path(session)}/stats").body)

    def close(self) -> None:
        """Stop listening to the hub."""
        self._listener.close()

    # --- One cached call ----------------------------------------------------------------------------------------------

    def begin(
        self, shape: CallShape, options: CacheOptions, front_key: Hashable | None, arguments: Mapping[str, Any],
        *, wait_seconds: float,
    ) -> Hit | Wait | Run:  # fmt: skip
        """Ask the hub: a value, somebody who is at it, or leave to run. Never raises for a hub that is in trouble."""
        run = Run(front_key, arguments=arguments, started=time.perf_counter())
        if not self.is_reachable():
            return run
        try:
            run.request = {
                "tool": options.tool,
                "params": shape.params(arguments),
                "tool_version": options.version or None,
                "root": shape.root_id or None,
            }
            dumps(run.request)
        except (Uncacheable, ValueError):
            return run
        try:
            self._listener.start()
            self._declare(options)
            return self._ask(run, options, wait_seconds)
        except (HubError, HubUnreachable) as error:
            self._note_trouble(error)
            return Run(front_key, arguments=arguments, started=time.perf_counter())

    def _ask(self, run: Run, options: CacheOptions, wait_seconds: float) -> Hit | Wait | Run:
        heard = self.front.announcements
        run.look = take_look(options.depends_on, run.arguments)
        answer = self._look_up(run, options, wait_seconds, run.look.fingerprints)
        if answer["state"] == "validate":
            shown = self._look_closer(run.look, answer["depends_on"])
            answer = self._look_up(run, options, wait_seconds, shown)
            if answer["state"] == "validate":  # it depends on something that is out of sight here: compute it anew
                answer = self._look_up(run, options, wait_seconds, shown, max_age_seconds=0)
        self._note_answer()
        if answer["state"] == "wait":
            return Wait(float(answer["retry_after_seconds"]))
        if answer["state"] == "hit" and not answer.get("error"):
            if answer.get("verify"):
                run.verifies, run.is_cacheable = answer["etag"], True
                return run
            self._remember(run, options, answer["value"], answer["key"], answer.get("expires_in_seconds"), heard)
            return Hit(decode(answer["value"]))
        lease = answer.get("lease")
        run.lease = lease["token"] if lease else ""
        run.is_cacheable = answer.get("reason") != "uncacheable" and not run.look.is_racy
        if run.lease:
            self._keeper.hold(run.lease, {**run.request, "session": options.session})
        return run

    def _look_up(
        self, run: Run, options: CacheOptions, wait_seconds: float, shown: list[dict[str, Any]], **more: Any
    ) -> Mapping[str, Any]:
        with self._lock:
            front_hits = self._front_hits.pop(options.tool, 0)
        body = {
            **run.request,
            "fingerprints": shown,
            "lease": True,
            "lease_seconds": LEASE_SECONDS,
            "wait_seconds": wait_seconds or None,
            "front_hits": front_hits or None,
            **more,
        }
        path = f"{self._path(options.session)}/lookup"
        reply = self._connection.request("POST", path, body, timeout_seconds=wait_seconds + 10)
        return cast("Mapping[str, Any]", reply.body)

    def _look_closer(self, look: Look, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Show what the stored entry asks for: hashes of the files that were young when it was stored."""
        shown = {(item["kind"], item.get("path") or item.get("name")): item for item in look.fingerprints}
        for item in stored:
            if item["kind"] != "file":
                continue
            try:
                state = look_at_file(item["path"], with_hash="sha256" in item)
            except Unseen:
                continue
            shown["file", item["path"]] = state.as_fingerprint()
        return list(shown.values())

    def finish(self, run: Run, options: CacheOptions, value: Any) -> None:
        """Store what the tool answered, unless something it depends on changed while it ran."""
        self._keeper.let_go(run.lease)
        if not (run.is_cacheable or run.lease):
            return
        heard = self.front.announcements
        try:
            encoded = encode(value)
            text = dumps(encoded)
        except (Uncacheable, ValueError):
            self._release(run, options)
            return
        if run.look is None or not self._still_looks_so(run, options):
            self._release(run, options)
            return
        body = {
            **run.request,
            "value": encoded,
            "ttl_seconds": options.ttl_seconds,
            "depends_on": run.look.fingerprints,
            "cost_ms": round((time.perf_counter() - run.started) * 1000, 3),
            "lease_token": run.lease or None,
            "verifies": run.verifies or None,
        }
        try:
            answer = self._connection.request("PUT", self._path(options.session), body).body
            self._note_answer()
        except (HubError, HubUnreachable) as error:
            self._note_trouble(error)
            return
        if answer.get("stored"):
            self._remember(run, options, encoded, answer["key"], answer.get("expires_in_seconds"), heard, text)

    def fail(self, run: Run, options: CacheOptions, error: BaseException) -> None:
        """The tool failed: let the next caller try, and let the hub's policy say whether the error is remembered."""
        self._keeper.let_go(run.lease)
        if run.lease:
            self._release(run, options, {"type": type(error).__name__, "message": str(error)[:500]})

    def _still_looks_so(self, run: Run, options: CacheOptions) -> bool:
        look = run.look
        if look is None or look.is_racy or not all(state.is_unchanged() for state in look.files):
            return False
        if look.files_alone_decide:
            return True
        again = take_look([rule for rule in options.depends_on if rule.kind in ("directory", "tree")], run.arguments)
        folders = [item for item in look.fingerprints if item["kind"] == "directory"]
        return not again.is_racy and [item for item in again.fingerprints if item["kind"] == "directory"] == folders

    def _release(self, run: Run, options: CacheOptions, error: Any = None) -> None:
        if not run.lease:
            return
        body = {**run.request, "lease_token": run.lease, "error": error or "not stored"}
        try:
            self._connection.request("PUT", self._path(options.session), body)
        except (HubError, HubUnreachable) as problem:
            self._note_trouble(problem)

    def _remember(
        self,
        run: Run,
        options: CacheOptions,
        encoded: Any,
        key: str,
        expires_in_seconds: float | None,
        heard: int,
        text: str | None = None,
    ) -> None:
        """Take the value into the front cache, where its files can be checked by a stat."""
        look = run.look
        if run.front_key is None or look is None or look.is_racy or not look.files_alone_decide:
            return
        entry = FrontEntry(
            text=dumps(encoded) if text is None else text,
            tool=options.tool,
            session=options.session or self._session or "",
            key=key,
            files=look.files,
            tags=frozenset(item["name"] for item in look.fingerprints if item["kind"] == "tag"),
            paths=tuple((item["kind"], item["path"]) for item in look.fingerprints if "path" in item),
            expires_at=None if expires_in_seconds is None else time.monotonic() + expires_in_seconds,
        )
        self.front.put(run.front_key, entry, heard=heard)

    def note_front_hit(self, tool: str) -> None:
        """Count a hit that never reached the hub; the next look-up of the tool reports it."""
        self._front_hits[tool] = self._front_hits.get(tool, 0) + 1

    # --- The hub's state ----------------------------------------------------------------------------------------------

    def is_reachable(self) -> bool:
        """Tell whether the hub may be asked: after a failure it is left alone for a while."""
        return time.monotonic() >= self._resume_at

    def _note_trouble(self, error: HubError | HubUnreachable) -> None:
        if isinstance(error, HubError) and error.status < 500 and not isinstance(error, Unauthenticated | Forbidden):
            logger.debug("the hub refused a tool call: %s", error)
            return
        with self._lock:
            self._resume_at = time.monotonic() + self._break_seconds
            self._break_seconds = min(self._break_seconds * 2, LAST_BREAK_SECONDS)
            first, self._warned = not self._warned, True
        if first:
            logger.warning("MemoryHub can't be used right now, tools run uncached until it can: %s", error)

    def _note_answer(self) -> None:
        self._break_seconds = FIRST_BREAK_SECONDS
        self._warned = False

    def _path(self, session: str | None) -> str:
        name = session or self._session
        if not name:
            raise ValueError("name a session: MemoryHub(..., session=...) or session=... here")
        return f"/sessions/{_quoted(name)}/tool-results"

    def _declare(self, options: CacheOptions) -> None:
        """Declare a tool that the hub knows nothing of as cacheable; a policy that is there already wins."""
        if options.tool in self._declared:
            return
        try:
            self._connection.request("GET", f"/tool-policies/{_quoted(options.tool)}")
        except NotFound:
            policy = {"cacheable": True, "ttl_seconds": options.ttl_seconds, "scope": options.scope}
            self._connection.request("PUT", f"/tool-policies/{_quoted(options.tool)}", policy)
        self._declared.add(options.tool)

    def _announce_run(self, tool: str, invalidates: tuple[str, ...], session: str | None, failed: bool) -> None:
        for name in invalidates:
            self.front.announce({"tool_or_tag": name})
        if not self.is_reachable():
            self._note_unheard_write()
            return
        try:
            if tool not in self._declared:
                policy = {
                    "cacheable": False,
                    "invalidates": list(invalidates),
                    "may_change_anything": not invalidates,
                }
                self._connection.request("PUT", f"/tool-policies/{_quoted(tool)}", policy)
                self._declared.add(tool)
            body = {"tool": tool, "error": "failed" if failed else None}
            self._connection.request("PUT", self._path(session), body)
        except (HubError, HubUnreachable) as error:
            self._note_trouble(error)
            self._note_unheard_write()

    def _note_unheard_write(self) -> None:
        """The hub has not heard of a write: nothing of before may be answered from memory here."""
        self.front.clear()

    def _renew(self, token: str, call: dict[str, object]) -> None:
        request = dict(call)
        session = cast("str | None", request.pop("session", None))
        body = {**request, "lease": True, "lease_token": token, "lease_seconds": LEASE_SECONDS, "max_age_seconds": 0}
        try:
            self._connection.request("POST", f"{self._path(session)}/lookup", body)
        except (HubError, HubUnreachable) as error:
            logger.debug("a lease could not be renewed: %s", error)


def _quoted(name: str) -> str:
    return quote(name, safe="")
