"""`python -m tests.bench.page_times [memories]`: every page of a large hub, and every way to filter and sort its lists.

The hub holds so many memories (100,000 by default; MEMORYHUB_BENCH_MEMORIES says it too), as many usage records, a tenth as
many events, and the rest in proportion; a second workspace beside it is small. An admin visits each address several times,
with no figure kept from the visit before. For each: the p95 of the server's time and of its processor time, the bytes of
HTML (the data of charts apart), and how many queries it took, here and in the small workspace. The table goes to the
error output; figures are the slowest page, the largest one, and one line for each page that misses.
"""

from __future__ import annotations

import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.bench._large_hub import SMALL, Size, fill
from tests.bench.throwaway import show, throwaway_hub

MEMORIES = 100_000
ROUNDS, ROUNDS_SECONDS = 20, 1.0
MOST_MS, MOST_BYTES = 250, 200 * 1024
QUERIES_OF_AN_EMPTY_LIST = 5  # a list without rows does not ask for what belongs to them
QUERIES_OF_CANDIDATES = 5  # a small scope is searched whole, a large one's candidates are looked for first
_CHART_DATA = re.compile(rb'<script[^>]*type="application/json"[^>]*>.*?</script>', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Visit:
    """An address; with `part` as htmx asks for it, `target` being the element to swap."""

    path: str
    part: bool = False
    target: str = ""

    def __str__(self) -> str:
        return f"{self.path} (part)" if self.part else self.path


@dataclass(slots=True)
class Seen:
    """What visits of one address took."""

    visit: Visit
    wall_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    html_bytes: int = 0
    queries: int = 0
    queries_small: int = 0


@dataclass(frozen=True, slots=True)
class Finds:
    """What finds something in the small workspace, and so in the large one, whose first memories are the same."""

    word: str  # in a memory of user-0 and in one in the trash
    person: str  # has the fewest memories

    @classmethod
    def of(cls, workspace: Any) -> Finds:
        from memoryhub.long_term_memory.models import Memory

        active = Memory.objects.filter(workspace=workspace, state="active", trust="trusted")
        people = Counter(active.exclude(scope__user="").values_list("scope__user", flat=True))
        texts = active.filter(scope__user="user-0").values_list("content", flat=True)
        trash = Memory.objects.filter(workspace=workspace, state="forgotten").values_list("content", flat=True)
        in_trash = Counter(word for text in trash for word in text.split() if not word.isdigit())
        words = {word for text in texts for word in text.split()} & set(in_trash)
        return cls(min(words, key=lambda word: (in_trash[word], word)), min(people, key=lambda one: (people[one], one)))


class Names:
    """Rows of one workspace that addresses name."""

    def __init__(self, workspace: Any, finds: Finds) -> None:
        from memoryhub.audit.models import ChangeSet
        from memoryhub.common import clock
        from memoryhub.long_term_memory.models import Memory, MemoryVersion
        from memoryhub.prompt_cache.models import Price, UsageRecord
        from memoryhub.session_cache.models import SessionEvent, ToolResult
        from memoryhub.webhooks.models import Webhook
        from memoryhub.work.models import Job
        from memoryhub.workspaces.models import ApiKey

        self.finds = finds
        memories = Memory.objects.filter(workspace=workspace)
        self.memory = memories.order_by("-version", "id").values_list("public_id", flat=True)[0]
        self.quiet_memory = memories.filter(version=1).order_by("id").values_list("public_id", flat=True)[0]
        self.versions = memories.get(public_id=self.memory).version
        changes = ChangeSet.objects.filter(workspace=workspace)
        self.large_change = changes.order_by("-subject_count", "id").values_list("public_id", flat=True)[0]
        self.change = changes.order_by("-id").values_list("public_id", flat=True)[0]
        self.old_change = changes.order_by("id").values_list("public_id", flat=True)[0]
        self.job = Job.objects.filter(workspace=workspace).order_by("-id").values_list("public_id", flat=True)[0]
        events = SessionEvent.objects.filter(session__workspace=workspace, session__sid="session-0")
        middle = events.count() // 2
        self.event = events.order_by("id").values_list("event_id", flat=True)[middle]
        self.key = ToolResult.objects.filter(workspace=workspace).order_by("id").values_list("key", flat=True)[0]
        self.price = Price.objects.filter(workspace=workspace).order_by("id").values_list("pk", flat=True)[0]
        self.api_key = ApiKey.objects.filter(workspace=workspace).order_by("id").values_list("pk", flat=True)[0]
        self.webhook = Webhook.objects.filter(workspace=workspace).values_list("public_id", flat=True)[0]
        versions = MemoryVersion.objects.filter(memory__workspace=workspace, memory__public_id=self.memory)
        self.version = versions.order_by("id").values_list("public_id", flat=True)[0]
        records = UsageRecord.objects.filter(workspace=workspace)
        self.record = records.order_by("-id").values_list("pk", flat=True)[0]
        now = clock.now()
        self.now, self.year, self.today = now.isoformat(), now.year, now.date().isoformat()


def pages(names: Names) -> dict[str, list[Visit]]:
    """The addresses of each page by the name that the URL conf gives it, without those of `next page`."""
    memory, quiet, change = (quote(one, safe="") for one in (names.memory, names.quiet_memory, names.change))
    return {
        "overview": [Visit("/"), Visit("/", part=True, target="feed")],
        "feed_news": [
            Visit(f"/feed?after={names.change}", part=True),
            Visit(f"/feed?after={names.old_change}", part=True),
        ],
        "login": [Visit("/login")],
        "account": [Visit("/account")],
        "palette": [Visit("/palette"), *(Visit(f"/palette?q={q}", part=True) for q in ("mem", "taskaro", "session-1"))],
        "report": list(_report(names)),
        "transcript_import": [Visit("/report/import")],
        "doctor": [
            Visit("/doctor"),
            *(Visit(f"/doctor?range={name}") for name in ("7d", "90d")),
            Visit("/doctor?order=time"),
            Visit("/doctor?range=90d&cause=tools_changed"),
            Visit("/doctor?range=90d&order=time&cause=tools_changed"),
            Visit("/doctor?range=90d&session=session-7"),
            Visit("/doctor?tz=Asia%2FKolkata"),
        ],
        "requests": [
            Visit("/requests"),
            Visit("/requests?range=90d&model=claude-bench-1"),
            Visit("/requests?range=90d&session=session-3"),
            Visit("/requests?range=90d&user=chen&agent=main"),
            Visit("/requests?range=90d&project=%2Fhome%2Fana%2Fprojects%2Fproject-7"),
        ],
        "request": [Visit(f"/requests/{names.record}")],
        "planner": [Visit("/planner"), Visit("/planner?session=session-3")],
        "drop_price": [Visit(f"/prices/{names.price}/remove")],
        "prices": [Visit("/prices"), Visit("/prices?model=claude-bench-1")],
        "sessions": [
            Visit("/sessions"),
            Visit("/sessions?agent=agent-3"),
            Visit("/sessions?user=user-7"),
            Visit("/sessions?project=%2Fsrv%2Fprojects%2Fproject-7"),
            Visit("/sessions?q=task"),
            Visit("/sessions?q=nowhere-to-be-found"),
            Visit("/sessions?agent=agent-3&project=%2Fsrv%2Fprojects%2Fproject-3&q=task"),
        ],
        "session": [
            Visit("/sessions/session-0"),
            Visit(f"/sessions/session-0?at={names.event}"),
            Visit(f"/sessions/session-0?from={names.event}"),
            Visit(f"/sessions/session-0?at={names.event}", part=True),
            Visit("/sessions/session-0-fork-3"),
            Visit("/sessions/session-1"),
        ],
        "rewind_session": [Visit(f"/sessions/session-0/rewind?at={names.event}")],
        "fork_session": [Visit(f"/sessions/session-0/fork?at={names.event}")],
        "tool_cache": [
            Visit("/tool-cache"),
            Visit("/tool-cache?order=largest"),
            Visit("/tool-cache?order=hits"),
            Visit("/tool-cache?tool=tool_3"),
            Visit("/tool-cache?tool=tool_3&order=largest"),
            Visit("/tool-cache?session=session-1"),
            Visit("/tool-cache?session=session-1&tool=tool_1&order=hits"),
        ],
        "tool_policy": [Visit("/tool-cache/policy?tool=tool_3")],
        "invalidate": [
            Visit("/invalidate"),
            Visit(f"/invalidate?key={names.key}"),
            Visit("/invalidate?tool=tool_3"),
            Visit("/invalidate?session=session-1"),
            Visit("/invalidate?path=src/module_7.py"),
        ],
        "memories": list(_memories(names)),
        "new_memory": [Visit("/memories/new")],
        "memory_import": [Visit("/memories/import")],
        "bulk_memories": [
            Visit(f"/memories/bulk?action=add_tag&value=kept&user={names.finds.person}"),
            Visit("/memories/bulk?action=export&state=archived"),
            Visit("/memories/bulk?action=add_tag&value=kept"),
            Visit("/memories/bulk?action=importance&value=0.4&kind=episodic"),
        ],
        "memory": [
            Visit(f"/memories/{memory}"),
            Visit(f"/memories/{memory}?version={names.versions // 2 or 1}"),
            Visit(f"/memories/{quiet}"),
        ],
        "memory_curve": [Visit(f"/memories/{memory}/curve?importance=0.7", part=True)],
        "erase_memory": [Visit(f"/memories/{quiet}/erase")],
        "redact_memory_version": [Visit(f"/memories/{memory}/versions/{names.version}/redact")],
        "search": [
            Visit("/search"),
            Visit("/search?q=karo1+miten2&user=user-7"),
            Visit("/search?q=karo1+miten2&project=%2Fsrv%2Fprojects%2Fproject-7"),
            Visit("/search?q=karo1+miten2"),
        ],
        "review": [Visit("/review"), *(Visit(f"/review?kind={kind}") for kind in REVIEW_KINDS)],
        "changes": [Visit("/changes"), *(Visit(f"/changes?who={who}") for who in ("user", "key", "job", "command"))],
        "change": [Visit(f"/changes/{change}"), Visit(f"/changes/{names.large_change}")],
        "jobs": [Visit("/jobs"), Visit("/jobs?state=dead"), Visit("/jobs?state=done"), Visit("/jobs", part=True)],
        "job": [Visit(f"/jobs/{names.job}"), Visit(f"/jobs/{names.job}", part=True)],
        "settings": [Visit("/settings")],
        "settings_keys": [Visit("/settings/keys")],
        "revoke_key": [Visit(f"/settings/keys/{names.api_key}/revoke")],
        "settings_members": [Visit("/settings/members")],
        "settings_decay": [Visit("/settings/decay")],
        "settings_guards": [Visit("/settings/guards")],
        "settings_webhooks": [Visit("/settings/webhooks")],
        "webhook": [Visit(f"/settings/webhooks/{names.webhook}")],
        "remove_webhook": [Visit(f"/settings/webhooks/{names.webhook}/remove")],
        "status": [Visit("/status"), Visit("/status", part=True)],
        "connect": [Visit("/connect")],
        "connect_seen": [Visit("/connect/seen", part=True)],
        "figures": [Visit("/figures")],
    }


def every_visit(names: Names) -> list[Visit]:
    """All addresses, in the same order for every workspace."""
    return [visit for visits in pages(names).values() for visit in visits]


REVIEW_KINDS = ("duplicate", "contradiction", "quarantined", "extracted", "fading")
# Not pages: a stream, which holds no connection (see tests/web/test_live.py).
NOT_VISITED = frozenset({"live_changes"})


def _report(names: Names) -> Iterator[Visit]:
    yield Visit("/report")
    for group in ("project", "agent", "user", "session"):
        yield Visit(f"/report?by={group}")
        yield Visit(f"/report?by={group}&range=90d", part=True, target="breakdown")
    for preset in ("7d", "90d", "month", "last-month"):
        yield Visit(f"/report?range={preset}")
    yield Visit("/report?range=90d&by=session&compare=none")
    yield Visit(f"/report?from={names.year - 1}-12-01&to={names.today}&by=session")
    yield Visit("/report?tz=America%2FNew_York")
    yield Visit("/report?tz=Asia%2FKolkata&range=90d&by=session")


def _memories(names: Names) -> Iterator[Visit]:
    project = "%2Fsrv%2Fprojects%2Fproject-7"
    filters = [
        *(f"state={state}" for state in ("active", "fading", "archived", "forgotten")),
        *(f"view={view}" for view in ("fading-week", "pinned", "unused", "harmful")),
        *(f"kind={kind}" for kind in ("semantic", "episodic", "procedural")),
        *(f"trust={trust}" for trust in ("trusted", "unreviewed", "quarantined")),
        *(f"created={period}" for period in ("1d", "7d", "30d", "90d")),
        *(f"tag=tag-{number}" for number in (0, 300)),
        *(f"user=user-{number}" for number in (0, 700)),
        "agent=agent-3",
        f"project={project}",
        f"agent=agent-7&project={project}",
        "session=session-3",
        f"since={names.year - 1}-06-01&until={names.year - 1}-07-01",
        f"until={names.year - 1}-02-01",
        "tag=tag-0&tag=tag-1",
        "user=user-0&kind=semantic&state=active",
        "agent=agent-3&trust=quarantined",
        "kind=episodic&state=archived&created=90d",
        "kind=procedural&trust=unreviewed",
        "view=harmful&kind=semantic",
        "view=pinned&state=archived",
        "tag=tag-0&user=user-0",
        f"tag=tag-0&since={names.year - 1}-06-01",
        "user=nobody-of-this-name",
        "tag=nothing-of-this-name",
        "q=karo1+miten2",
        f"q={names.finds.word}&user=user-0",
        "q=karo1&tag=tag-0",
        f"q={names.finds.word}&state=forgotten",
    ]
    yield Visit("/memories")
    for one in filters:
        yield Visit(f"/memories?{one}")
    for sort in ("importance", "strength", "created", "accessed"):
        yield Visit(f"/memories?sort={sort}")
        yield Visit(f"/memories?sort={sort}&dir=asc")
        for one in (
            "state=archived",
            "view=pinned",
            "view=harmful",
            "trust=quarantined",
            "tag=tag-300",
            "agent=agent-3",
        ):
            yield Visit(f"/memories?sort={sort}&{one}")
    yield Visit("/memories?dir=asc")
    yield Visit("/memories?show=strengths")
    yield Visit("/memories?show=strengths&state=archived")
    yield Visit(f"/memories?row={quote(names.memory, safe='')}", part=True)
    yield Visit(f"/memories?after={quote(names.now)}", part=True)
    yield Visit(f"/memories?view=harmful&after={quote(names.now)}", part=True)


_NEXT = re.compile(rb'href="([^"]*[?&;]cursor=[^"]+)"')


class Visitor:
    """An admin who looks at pages of one workspace."""

    def __init__(self, workspace: Any) -> None:
        from django.test import Client

        from memoryhub.workspaces.models import User
        from memoryhub.workspaces.services import create_user

        name = f"visitor-of-{workspace.name}"
        user = User.objects.filter(username=name).first()
        self.user = user or create_user(
            name=name, password="the quiet evening of a bench", workspace=workspace, role="admin"
        )
        self.client = Client(headers={"Host": "localhost"})
        self.client.force_login(self.user)

    def look(self, visit: Visit) -> Any:
        headers = {"HX-Request": "true", "HX-Target": visit.target} if visit.part else {}
        response = self.client.get(visit.path, headers=headers)
        body = b"".join(response.streaming_content) if response.streaming else response.content
        assert response.status_code < 500, f"{visit}: {response.status_code}"
        return response, body


def measure(visitor: Visitor, visit: Visit) -> tuple[Seen, bytes]:
    """Visit an address a few times; the first time warms up and counts."""
    from django.core.cache import cache
    from django.db import connection

    seen = Seen(visit)

    def counted(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        seen.queries += 1
        return execute(sql, params, many, context)

    cache.clear()
    with connection.execute_wrapper(counted):
        response, body = visitor.look(visit)
    if response.status_code not in (200, 404):
        print(f"{visit}: {response.status_code}", file=sys.stderr)
    seen.html_bytes = len(_CHART_DATA.sub(b"", body))
    end = time.perf_counter() + ROUNDS_SECONDS
    while len(seen.wall_ms) < ROUNDS and (needs_more(seen) or time.perf_counter() < end):
        cache.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        visitor.look(visit)
        seen.wall_ms.append((time.perf_counter() - wall) * 1000)
        seen.cpu_ms.append((time.process_time() - cpu) * 1000)
    return seen, body


def needs_more(seen: Seen) -> bool:
    """Whether what was seen says little yet: of a few visits the p95 is the slowest one, which may have been disturbed."""
    return len(seen.wall_ms) < 3 or max(seen.wall_ms) > MOST_MS


def p95(values: list[float]) -> float:
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def second_page(visit: Visit, body: bytes) -> Visit | None:
    """The next page of a list, by the cursor in its link."""
    import html

    found = None if visit.part else _NEXT.search(body)
    return Visit(html.unescape(found[1].decode())) if found else None


def visit_all(large: Visitor, large_names: Names, small: Visitor, small_names: Names) -> list[Seen]:
    """Measure every address in the large workspace, and count its queries in the small one."""
    only = os.environ.get("MEMORYHUB_BENCH_PAGES", "")
    out = []
    print(HEAD, file=sys.stderr)
    for visit, small_visit in zip(every_visit(large_names), every_visit(small_names), strict=True):
        if only and not re.search(only, visit.path):
            continue
        seen, body = measure(large, visit)
        seen.queries_small = count_queries(small, small_visit)
        out.append(seen)
        tell(seen)
        following = second_page(visit, body)
        if following and not following.path.endswith("cursor="):
            after, _ = measure(large, following)
            after.queries_small = seen.queries_small + 1
            out.append(after)
            tell(after)
    return out


HEAD = f"{'p95 ms':>8} {'cpu ms':>8} {'KB':>6} {'queries':>7} {'small':>5}  page"


def tell(one: Seen) -> None:
    """A line of the table, as soon as it is known."""
    print(
        f"{p95(one.wall_ms):8.1f} {p95(one.cpu_ms):8.1f} {one.html_bytes / 1024:6.1f} {one.queries:7} "
        f"{one.queries_small:5}  {one.visit}",
        file=sys.stderr,
        flush=True,
    )


def count_queries(visitor: Visitor, visit: Visit) -> int:
    from django.core.cache import cache
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    cache.clear()
    with CaptureQueriesContext(connection) as captured:
        visitor.look(visit)
    return len(captured)


def forgotten_pages() -> list[str]:
    """Pages that the URL conf has and the list above does not."""
    from django.urls import get_resolver

    patterns = [one for one in flat(get_resolver("memoryhub.web.urls").url_patterns) if one.name not in NOT_VISITED]
    # The list's names stand in its source; its addresses need rows.
    listed = set(re.findall(r'^        "(\w+)": ', Path(__file__).read_text(encoding="utf-8"), re.MULTILINE))
    return sorted(one.name for one in patterns if one.name not in listed and answers_get(one.callback))


def answers_get(view: Any) -> bool:
    """Whether a view takes GET: its decorator says so when it is asked by a method that nobody takes."""
    from django.test import RequestFactory

    response = view(RequestFactory().generic("TRACE", "/"))
    return response.status_code != 405 or "GET" in response["Allow"]


def allowance(visit: Visit) -> int:
    """How many queries more than the small workspace a visit may take, whatever the large one holds."""
    searches = "q=" in visit.path and visit.path.startswith(("/memories", "/search"))
    return QUERIES_OF_AN_EMPTY_LIST + (QUERIES_OF_CANDIDATES if searches else 0)


def flat(patterns: Any) -> Iterator[Any]:
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            yield from flat(pattern.url_patterns)
        else:
            yield pattern


def report(seen: list[Seen], memories: int) -> None:
    """The slowest pages again, what misses, the slowest and the largest."""
    seen = sorted(seen, key=lambda one: -p95(one.wall_ms))
    print(f"\nThe slowest:\n{HEAD}", file=sys.stderr)
    for one in seen[:15]:
        tell(one)
    slowest, largest = seen[0], max(seen, key=lambda one: one.html_bytes)
    grown = [one for one in seen if one.queries > one.queries_small + allowance(one.visit)]
    for one in seen:
        if p95(one.wall_ms) > MOST_MS:
            show(
                "page_ms",
                p95(one.wall_ms),
                "ms",
                f"<= {MOST_MS}",
                page=str(one.visit),
                cpu_ms=round(p95(one.cpu_ms), 1),
            )
    for one in seen:
        if one.html_bytes > MOST_BYTES:
            show("page_bytes", one.html_bytes, "bytes", f"<= {MOST_BYTES}", page=str(one.visit))
    show(
        "pages_whose_queries_grow", len(grown), "pages", "= 0",
        grown=[f"{one.visit}: {one.queries_small} to {one.queries}" for one in grown],
    )  # fmt: skip
    show(
        "page_bytes_largest",
        largest.html_bytes,
        "bytes",
        f"<= {MOST_BYTES}",
        page=str(largest.visit),
        memories=memories,
    )
    show(
        "page_p95_ms", p95(slowest.wall_ms), "ms", f"<= {MOST_MS}", page=str(slowest.visit), pages=len(seen),
        cpu_ms=round(p95(slowest.cpu_ms), 1), memories=memories,
    )  # fmt: skip


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MEMORYHUB_BENCH_MEMORIES", MEMORIES)
    count = int(given)
    os.environ.setdefault("MEMORYHUB_EMBEDDER", "none")
    with throwaway_hub() as workspace:
        from memoryhub.common import clock
        from memoryhub.jobs.static_files import collect_if_changed
        from memoryhub.long_term_memory.models import Memory
        from memoryhub.workspaces.models import Workspace
        from memoryhub.workspaces.services import create_workspace

        collect_if_changed()
        small = Workspace.objects.filter(name="small").first()
        if small is None:
            small = create_workspace(name="small", time_zone="Asia/Shanghai")
            fill(small, SMALL, clock.now())
        if not Memory.objects.filter(workspace=workspace).exists():
            fill(workspace, Size.of(count), clock.now())
        there, beside = Visitor(workspace), Visitor(small)
        finds = Finds.of(small)
        large_names = Names(workspace, finds)
        missing = forgotten_pages()
        show("pages_not_visited", len(missing), "pages", "= 0", pages=missing)
        report(visit_all(there, large_names, beside, Names(small, finds)), count)


if __name__ == "__main__":
    main()
