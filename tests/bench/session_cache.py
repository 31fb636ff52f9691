"""`python -m tests.bench.session_cache`: look-ups and puts over HTTP beside a bare endpoint, the client's front cache beside
`os.stat` + `json.loads`, and what windows, forks and storage cost as a session grows.

MEMORYHUB_BENCH_EVENTS lowers the size of the large session (100,000) for a quick look.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from tests.bench.calibration import _served as served_bare_endpoint
from tests.bench.calibration import p50_ms
from tests.bench.throwaway import show, throwaway_hub
from tests.live import running_hub

ROUNDS = 500
VALUE = {"lines": [f"{n}: some text of a file that an agent reads" for n in range(40)]}


def turns(*calls: Callable[[], object], rounds: int) -> list[float]:
    """Return the medians in milliseconds of calls that take turns, so that a busy moment hits all of them."""
    taken: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + rounds // 10):
        for call, times in zip(calls, taken, strict=True):
            started = time.perf_counter()
            call()
            if number >= rounds // 10:
                times.append((time.perf_counter() - started) * 1000)
    return [statistics.median(times) for times in taken]


def over_http() -> None:
    """A warm hit, a hit in a session that was never asked before, and a put, each beside the bare endpoint."""
    with served_bare_endpoint() as bare_port, running_hub(MEMORYHUB_LOG_LEVEL="ERROR") as hub:
        bare = http.client.HTTPConnection("127.0.0.1", bare_port, timeout=30)
        ours = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=30)
        headers = {"Authorization": f"Bearer {hub.key}", "Content-Type": "application/json"}
        numbers = iter(range(10**9))

        def ask_bare() -> None:
            bare.request("GET", "/answer")
            bare.getresponse().read()

        def ask(method: str, path: str, body: dict[str, Any]) -> bytes:
            ours.request(method, f"/api/v1{path}", body=json.dumps(body), headers=headers)
            answer = ours.getresponse()
            data = answer.read()
            assert answer.status < 300, data
            return data

        ask("PUT", "/tool-policies/read_file", {"cacheable": True})
        for number in range(2000):
            ask("PUT", "/sessions/s/tool-results", {"tool": "read_file", "params": {"n": number}, "value": VALUE})

        def hit() -> None:
            assert b'"hit"' in ask("POST", "/sessions/s/tool-results/lookup", {"tool": "read_file", "params": {"n": 7}})

        def cold_hit() -> None:
            body = {"tool": "read_file", "params": {"n": next(numbers) % 2000}}
            assert b'"hit"' in ask("POST", "/sessions/s/tool-results/lookup", body)

        def put() -> None:
            ask(
                "PUT", "/sessions/p/tool-results", {"tool": "read_file", "params": {"n": next(numbers)}, "value": VALUE}
            )

        base, warm, cold, stored = turns(ask_bare, hit, cold_hit, put, rounds=ROUNDS)
    more = {"bare_ms": round(base, 3)}
    show("tool_hit_warm_over_bare_ninja", warm / base, "ratio", "<= 1.6", ms=round(warm, 3), **more)
    show("tool_hit_cold_over_bare_ninja", cold / base, "ratio", "<= 2.0", ms=round(cold, 3), **more)
    show("tool_put_over_bare_ninja", stored / base, "ratio", "<= 4", ms=round(stored, 3), **more)


def front_cache() -> None:
    """A hit of the client's own cache, beside the least that can check a file and give a fresh value."""
    from memoryhub.client.cached_function import CachedFunction
    from memoryhub.client.calls import CacheOptions
    from memoryhub.client.fingerprints import files, look_at_file
    from memoryhub.client.front import FrontCache, FrontEntry
    from memoryhub.client.http import Connection
    from memoryhub.client.tools import Tools

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt")
        Path(path).write_text("x")
        os.utime(path, (1, 1))
        text = json.dumps(VALUE, separators=(",", ":"))
        tools = Tools(Connection("http://127.0.0.1:9", "mh_x"), session="s", root=folder)
        tools.front.is_live = True
        options = CacheOptions("read_file", 600, files("path"), "", "session", None, folder)

        def read_file(path: str) -> dict[str, Any]:
            raise AssertionError("it should come from the cache")

        cached = CachedFunction(tools, read_file, options)
        call = cached.as_function()
        state = look_at_file(path)
        state.sha256 = None  # as if the file had been there for a while
        entry = FrontEntry(text, "read_file", "s", "k", [state], frozenset(), (("file", path),), time.monotonic() + 600)
        front: FrontCache = tools.front
        front.put(cached._front_key((path,), {}), entry, heard=front.announcements)

        def least() -> None:
            os.stat(path)
            json.loads(text)

        baseline, ours = turns(least, lambda: call(path), rounds=20_000)
    show("client_front_hit_over_stat_and_loads", ours / baseline, "ratio", "<= 2", us=round(ours * 1000, 2))


def windows(workspace: Any) -> None:
    """Windows, appends, forks and bytes as a session grows; in process, over the tables."""
    from memoryhub.session_cache.queries import stretches
    from memoryhub.session_cache.queries.windows import get_window
    from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session
    from memoryhub.workspaces.services import ensure_session

    large = int(os.environ.get("MEMORYHUB_BENCH_EVENTS") or 100_000)
    small, first = large // 10, large // 100
    dice = random.Random(1)
    words = [f"word{n}" for n in range(4000)]
    session = ensure_session(workspace=workspace, sid="growing")

    def text() -> str:
        return " ".join(dice.choices(words, k=25))

    def grow(upto: int, known: int) -> None:
        while known < upto:
            count = min(1000, upto - known)
            batch = [GivenEvent("message", text(), role=("user", "assistant")[n % 2]) for n in range(count)]
            append_events(session=session, events=batch)
            known += count

    def window_ms() -> float:
        return p50_ms(lambda: get_window(session, max_events=500), 40)

    def window_by_rows() -> object:
        with mock.patch.object(stretches, "WORTH_A_PACK", large):
            return get_window(session, max_events=500)

    def fork_ms() -> float:
        names = iter(range(10**9))
        stem = f"fork-{time.perf_counter_ns()}"
        return p50_ms(
            lambda: fork_session(workspace=workspace, session=session, at=None, sid=f"{stem}-{next(names)}"), 20
        )

    def append_ms() -> float:
        return p50_ms(lambda: append_events(session=session, events=[GivenEvent("message", text(), role="user")]), 200)

    grow(first, 0)
    fork_first, append_first = fork_ms(), append_ms()
    grow(small, first)
    window_small = window_ms()
    grow(large, small)
    window_large, fork_large, append_large = window_ms(), fork_ms(), append_ms()
    packed, by_rows = turns(lambda: get_window(session, max_events=500), window_by_rows, rounds=40)
    show("window_500_large_over_small", window_large / window_small, "ratio", "<= 1.3", ms=round(window_large, 2))
    show(
        "window_500_packed_over_rows", packed / by_rows, "ratio", "<= 0.7", ms=round(packed, 2), rows=round(by_rows, 2)
    )
    show("fork_large_over_small", fork_large / fork_first, "ratio", "<= 2", ms=round(fork_large, 2))
    show("append_last_over_first", append_large / append_first, "ratio", "<= 1.5", ms=round(append_large, 2))


def stored_bytes(workspace: Any, folder: Path) -> None:
    """What 10,000 events of 1.2 KB take on disk, a seventh of them repeated, with 20 forks of 50 events each."""
    from django.db import connection

    from memoryhub.session_cache.services.events import GivenEvent, append_events, fork_session
    from memoryhub.workspaces.services import ensure_session

    if connection.vendor != "sqlite":
        show("stored_bytes_over_raw", 0, "ratio", "<= 1.0", skipped="measured on SQLite's file")
        return
    dice = random.Random(2)
    words = [f"{dice.randrange(16**6):x}" for _ in range(20_000)]

    def file_bytes() -> int:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return (folder / "memoryhub.sqlite3").stat().st_size

    session = ensure_session(workspace=workspace, sid="bytes")
    before, raw, past = file_bytes(), 0, [""]

    def event(number: int) -> GivenEvent:
        nonlocal raw
        if number % 7 == 6:
            content = dice.choice(past)
        else:
            content = " ".join(dice.choices(words, k=170))
            past.append(content)
        raw += len(json.dumps({"kind": "message", "role": "user", "content": content}))
        return GivenEvent("message", content, role="user")

    past.clear()
    ids: list[str] = []
    for start in range(0, 10_000, 500):
        done = append_events(session=session, events=[event(start + n) for n in range(500)])
        ids += [item.id for item in done.items]
    for number in range(20):
        fork = fork_session(workspace=workspace, session=session, at=ids[number * 400], sid=f"bytes-fork-{number}")
        append_events(session=fork, events=[event(n) for n in range(50)])
    show("stored_bytes_over_raw", (file_bytes() - before) / raw, "ratio", "<= 1.0", mb=round(raw / 1e6, 1))


def main() -> None:
    """Print every figure of the session cache's table of measures."""
    over_http()
    front_cache()
    with throwaway_hub() as workspace:
        folder = Path(os.environ["MEMORYHUB_DATA_DIR"])
        hit_writes(workspace)
        stored_bytes(workspace, folder)
        windows(workspace)


def hit_writes(workspace: Any) -> None:
    """How many statements of a hundred hits write."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from memoryhub.session_cache.services import usage
    from memoryhub.session_cache.services.calls import ToolCall
    from memoryhub.session_cache.services.look_up import LookupOptions, look_up
    from memoryhub.session_cache.services.policies import PolicyChoice, set_tool_policy
    from memoryhub.session_cache.services.store import ToolValue, store_tool_result
    from memoryhub.workspaces.principals import Actor
    from memoryhub.workspaces.services import ensure_session

    owner = Actor("command", "bench", "bench")
    set_tool_policy(workspace=workspace, tool="t", choice=PolicyChoice(cacheable=True), actor=owner)
    call = ToolCall("hits", "t", {"n": 1})
    store_tool_result(session=ensure_session(workspace=workspace, sid="hits"), call=call, given=ToolValue(VALUE))
    with CaptureQueriesContext(connection) as captured:
        for _ in range(100):
            look_up(workspace=workspace, call=call, options=LookupOptions())
    writes = [query for query in captured.captured_queries if not query["sql"].lstrip().startswith("SELECT")]
    usage.flush()
    show("writes_of_100_hits", len(writes), "statements", "= 0", reads=len(captured.captured_queries))


if __name__ == "__main__":
    sys.exit(main())
