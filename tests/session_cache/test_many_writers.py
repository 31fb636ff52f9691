"""Threads and processes at one cache and one tree: the sums stay right, nothing acknowledged is lost, no lock error."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from memoryhub.client.http import Connection
from tests.live import ROOT, running_hub

SETUP = """
import json, os, sys, time
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
import django
django.setup()
from memoryhub.session_cache.models import SessionEvent, ToolResult, ToolSpace
from memoryhub.session_cache.services import usage
from memoryhub.session_cache.services.calls import ToolCall
from memoryhub.session_cache.services.events import GivenEvent, append_events
from memoryhub.session_cache.services.look_up import LookupOptions, look_up
from memoryhub.session_cache.services.store import ToolValue, store_tool_result
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.services import ensure_session
workspace = Workspace.objects.get(name="default")
"""


@pytest.fixture(scope="module")
def hub():
    with running_hub(MEMORYHUB_TOOL_CACHE_SESSION_BYTES="20000") as hub:
        hub.call("PUT", "/api/v1/tool-policies/t", {"cacheable": True})
        yield hub


def start(hub, code, *arguments):
    program = SETUP + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        env=hub.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def check_sums(hub):
    """Every space says what its entries add up to, and none is above its capacity."""
    done = start(
        hub,
        """
        from django.db.models import Count, Sum
        for space in ToolSpace.objects.all():
            held = space.entries.aggregate(bytes=Sum("size_bytes"), count=Count("id"))
            assert (space.used_bytes, space.entry_count) == (held["bytes"] or 0, held["count"]), space
            assert space.used_bytes <= 20000, space
        print("right")
        """,
    )
    out, err = done.communicate(timeout=60)
    assert out.strip() == "right", err


def test_eight_threads_with_a_hundred_calls_each(hub):
    """Look-ups, puts of changing sizes and invalidations over HTTP, all in one session that is far too small."""
    failures = []

    def work(number):
        connection = Connection(hub.base, hub.key, timeout_seconds=60)
        for i in range(100):
            call = {"tool": "t", "params": {"n": (number * 7 + i) % 40}}
            try:
                answer = connection.request(
                    "POST", "/sessions/threads/tool-results/lookup", {**call, "lease": True}
                ).body
                if answer["state"] == "miss":
                    token = answer["lease"]["token"]
                    body = {**call, "value": "x" * (100 + 37 * ((number + i) % 50)), "lease_token": token}
                    connection.request("PUT", "/sessions/threads/tool-results", body)
                if i % 25 == 24:
                    connection.request("POST", "/invalidations", {"session": "threads", "tool": "t"})
            except Exception as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)

    assert failures == []
    check_sums(hub)


WRITER = """
name, seconds = sys.argv[1], float(sys.argv[2])
shared = ensure_session(workspace=workspace, sid="processes")
own = ensure_session(workspace=workspace, sid=f"process-{name}")
end = time.monotonic() + seconds
written = 0
while time.monotonic() < end:
    number = written
    append_events(session=shared, events=[GivenEvent("message", "x" * 50, id=f"{name}-{number}", role="user")])
    append_events(session=own, events=[GivenEvent("message", "y" * 50, id=f"{number}", role="user")])
    call = ToolCall("processes", "t", {"n": number % 30})
    store_tool_result(session=shared, call=call, given=ToolValue("z" * (number % 900)))
    look_up(workspace=workspace, call=call, options=LookupOptions())
    written += 1
    usage.flush()
print(written)
"""


def test_four_processes_write_for_seconds_without_a_lock_error_or_a_lost_write(hub):
    writers = [
        start(hub, WRITER, str(number), os.environ.get("MEMORYHUB_STRESS_SECONDS") or "10") for number in range(4)
    ]
    outcomes = [writer.communicate(timeout=240) for writer in writers]

    assert [writer.returncode for writer in writers] == [0] * 4, [err[-500:] for _, err in outcomes]
    written = [int(out) for out, _ in outcomes]
    _, session = hub.call("GET", "/api/v1/sessions/processes")
    assert session["event_count"] == sum(written)
    for number, count in enumerate(written):
        _, own = hub.call("GET", f"/api/v1/sessions/process-{number}")
        assert own["event_count"] == count
    check_sums(hub)


KILLED = """
session = ensure_session(workspace=workspace, sid=sys.argv[1])
number = 0
while True:
    append_events(session=session, events=[GivenEvent("message", f"text {number}", id=str(number), role="user")])
    print(number, flush=True)
    number += 1
"""


def test_a_kill_during_appends_loses_nothing_that_was_acknowledged(hub):
    for attempt in range(3):
        sid = f"killed-{attempt}"
        writer = start(hub, KILLED, sid)
        acknowledged = -1
        end = time.monotonic() + 60
        while acknowledged < 30 + 7 * attempt and time.monotonic() < end:
            acknowledged = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest, _ = writer.communicate(timeout=30)
        acknowledged = max([acknowledged, *(int(line) for line in rest.split() if line.isdigit())])

        _, window = hub.call("GET", f"/api/v1/sessions/{sid}/context")
        texts = [message["content"] for message in window["messages"]]
        assert texts[: acknowledged + 1] == [f"text {i}" for i in range(acknowledged + 1)]
        assert len(texts) <= acknowledged + 2
        status, done = hub.call(
            "POST", f"/api/v1/sessions/{sid}/events", {"kind": "message", "role": "user", "content": "on"}
        )
        assert (status, done["items"][0]["depth"]) == (201, len(texts)), json.dumps(done)
