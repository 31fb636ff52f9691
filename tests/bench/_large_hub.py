"""A hub as a company has it after two years: memories, usage, events and all that comes with them, in proportion.

What has a service for many rows goes through it (memories, events, roll-ups); the rest are bulk rows of the same shape.
Seeded: the same size is the same hub, but for the day on which it ends, which is today.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.bench import ledger
from tests.bench.memory_speed import sentences

USERS, AGENTS, PROJECTS, TAGS, TOOLS = 1_000, 20, 60, 400, 30
DAYS = 720
CHUNK = 5_000
WRITTEN = 100_000  # memories that a writer writes; more than these are copies made inside the database
LARGE_SESSION, FORKS, SESSION_EVENTS = 12_000, 30, 200
RECORDS_A_SESSION = 200
LARGE_HISTORY, LARGE_RECALLS = 300, 3_000


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows; the others follow in proportion."""

    memories: int
    records: int
    events: int

    @classmethod
    def of(cls, memories: int) -> Size:
        """As many usage records as memories and a tenth as many events, but always one session of over 10,000."""
        return cls(memories, memories, max(memories // 10, LARGE_SESSION + 1_000))


SMALL = Size(
    3_000, 3_000, 3_000
)  # the least that has something on every page: memories of each user, hits in the trash


def fill(workspace: Any, size: Size, now: datetime) -> None:
    """Put everything into an empty workspace."""
    sessions = _fill_sessions(workspace, size)
    _fill_memories(workspace, size, now)
    _fill_ledger(workspace, size, now)
    _fill_events(workspace, size, sessions)
    _fill_tool_cache(workspace, size, sessions, now)
    _fill_long_tail(workspace, size, now)
    _refresh_statistics()


def _writer(workspace: Any) -> Any:
    from memoryhub.long_term_memory.services import Writer
    from memoryhub.workspaces.principals import command_principal

    return Writer.of(command_principal(workspace, "bench"), door="bench")


# --- Long-term memory ------------------------------------------------------------------------------------------------
def _drafts(workspace: Any, size: Size, now: datetime) -> Iterator[Any]:
    from memoryhub.long_term_memory.services import MemoryDraft, ScopeNames

    dice = random.Random(11)
    texts = sentences(min(size.memories, WRITTEN))
    session_count = max(1, size.records // RECORDS_A_SESSION)
    count = min(size.memories, WRITTEN)
    step = timedelta(days=DAYS) / count
    for number in range(count):
        personal = number % 5 < 3
        scope = (
            ScopeNames(user=f"user-{int(USERS * dice.random() ** 2)}")
            if personal
            else ScopeNames(agent=f"agent-{number % AGENTS}", project=f"/srv/projects/project-{number % PROJECTS}")
        )
        created = now - timedelta(days=DAYS) + step * number
        recalled = dice.random() < 0.4
        yield MemoryDraft(
            content=next(texts),
            scope=scope,
            kind=("semantic", "semantic", "procedural", "episodic")[number % 4],
            importance=round(dice.random(), 2),
            tags=[f"tag-{int(TAGS * dice.random() ** 3)}" for _ in range(dice.randint(0, 3))],
            session=f"session-{number % session_count}" if number % 20 == 0 else None,
            pinned=number % 500 == 0,
            created_at=created,
            access_count=dice.randint(1, 40) if recalled else 0,
            last_accessed_at=min(now, created + timedelta(days=200 * dice.random())) if recalled else None,
            state="forgotten" if number % 40 == 0 else "archived" if number % 9 == 0 else "active",
            trust="quarantined" if number % 100 == 1 else "unreviewed" if number % 50 == 2 else None,
        )


def _fill_memories(workspace: Any, size: Size, now: datetime) -> None:
    from django.db import connection

    from memoryhub.long_term_memory.services import remember

    writer, drafts = _writer(workspace), _drafts(workspace, size, now)
    while some := [draft for _, draft in zip(range(CHUNK), drafts, strict=False)]:
        remember(writer=writer, drafts=some, embed=False, imported=True)
    _copy_memories(workspace, size.memories // WRITTEN - 1)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE long_term_memory_memory SET harmful_count = 2 WHERE workspace_id = %s AND id %% 2000 = 0",
            [workspace.pk],
        )
    _fill_versions(workspace, size, now)
    _fill_receipts(workspace, size, now)
    _fill_reviews(workspace, size, now)


def _copy_memories(workspace: Any, times: int) -> None:
    """The same memories a few times more, each with its own id and text, and all that the hub keeps beside a memory."""
    from django.db import connection, transaction
    from django.db.models import Max, Min

    from memoryhub.long_term_memory.models import Memory, MemoryTag, MemoryVersion, SearchDocument
    from memoryhub.long_term_memory.search import documents
    from memoryhub.long_term_memory.search.index import term_index

    bounds = Memory.objects.filter(workspace=workspace).aggregate(low=Min("id"), high=Max("id"))
    kept = list(SearchDocument.objects.filter(workspace=workspace).only("key", "terms", "workspace_id"))
    tokens = [(one.key, documents.index_tokens(one)) for one in kept] if times > 0 else []
    for number in range(1, times + 1):
        away = number * (bounds["high"] - bounds["low"] + 1)
        new = {
            "id": f"id + {away}", "memory_id": f"memory_id + {away}", "key": f"key + {away}",
            "public_id": f"public_id || '-{number}'", "content": f"content || ' copy {number}'",
            "dedupe_key": f"substr(dedupe_key, 1, 50) || '-{number}'",
        }  # fmt: skip
        with transaction.atomic(), connection.cursor() as cursor:
            for model, where in (
                (Memory, "id"), (MemoryTag, "memory_id"), (MemoryVersion, "memory_id"), (SearchDocument, "key & 1099511627775")
            ):  # fmt: skip
                names = [
                    field.column for field in model._meta.concrete_fields if field.column != "id" or model is Memory
                ]
                columns = ", ".join(f'"{name}"' for name in names)
                values = ", ".join(new.get(name, f'"{name}"') for name in names)
                table = model._meta.db_table
                cursor.execute(
                    f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} WHERE {where} BETWEEN %s AND %s",
                    [bounds["low"], bounds["high"]],
                )
            term_index().add([(key + away, words) for key, words in tokens])
            if connection.vendor == "postgresql":
                cursor.execute(
                    "SELECT setval(pg_get_serial_sequence('long_term_memory_memory', 'id'), MAX(id)) FROM long_term_memory_memory"
                )


def _fill_versions(workspace: Any, size: Size, now: datetime) -> None:
    """Every twentieth memory was edited by an agent, each time a change set of its own; one memory very often."""
    from memoryhub.audit.models import ChangeSet
    from memoryhub.long_term_memory.models import Memory

    edited = list(Memory.objects.filter(workspace=workspace).order_by("-id")[: max(20, size.memories // 20)])
    opened = _change_sets(workspace, len(edited), now)
    for start in range(0, len(edited), CHUNK):
        _add_versions(edited[start : start + CHUNK], opened[start : start + CHUNK])
    often = edited[0]
    sets = _change_sets(workspace, min(LARGE_HISTORY, size.memories // 10), now)
    for change_set in sets:
        _add_versions([often], [change_set])
    ChangeSet.objects.filter(pk=sets[-1].pk).update(reason="its text was wrong")


def _change_sets(workspace: Any, count: int, now: datetime) -> list[Any]:
    from memoryhub.audit.models import AuditEvent, ChangeSet
    from memoryhub.common import ids

    opened = [
        ChangeSet(
            workspace=workspace,
            public_id=ids.new_id("chg"),
            action="edit memory",
            reason="the team decided otherwise" if number % 3 else "",
            door=("api", "mcp", "web")[number % 3],
            subject_count=1,
            actor_kind=("key", "key", "user")[number % 3],
            actor_id=f"actor-{number % 50}",
            actor_label=f"agent {number % 50}",
            created_at=now - timedelta(minutes=count - number),
        )
        for number in range(count)
    ]
    ChangeSet.objects.bulk_create(opened, batch_size=1_000)
    lines = [
        AuditEvent(
            workspace=workspace,
            change_set=one,
            action="edit memory",
            subject_type="memory",
            subject_id=one.public_id,
            actor_kind=one.actor_kind,
            actor_id=one.actor_id,
            actor_label=one.actor_label,
            created_at=one.created_at,
        )
        for one in opened
    ]
    AuditEvent.objects.bulk_create(lines, batch_size=1_000)
    return opened


def _add_versions(memories: list[Any], change_sets: list[Any]) -> None:
    from django.db import transaction

    from memoryhub.common import ids
    from memoryhub.long_term_memory.models import MemoryVersion
    from memoryhub.long_term_memory.rows import insert_rows, light_row, update_memories

    rows = []
    for memory, change_set in zip(memories, change_sets, strict=True):
        memory.version += 1
        memory.content_changed_at = change_set.created_at
        rows.append(
            light_row(
                MemoryVersion,
                workspace_id=memory.workspace_id,
                memory_id=memory.pk,
                public_id=ids.new_id("memver"),
                number=memory.version,
                operation="modified",
                content=f"{memory.content} as of version {memory.version}",
                content_sha256=memory.content_sha256,
                facts={"importance": memory.importance, "tags": [], "state": memory.state},
                actor_kind=change_set.actor_kind,
                actor_id=change_set.actor_id,
                actor_label=change_set.actor_label,
                change_set_id=change_set.pk,
                created_at=change_set.created_at,
            )
        )
    with transaction.atomic():
        update_memories(memories, ("version", "content_changed_at"))
        insert_rows(rows)


def _fill_receipts(workspace: Any, size: Size, now: datetime) -> None:
    from memoryhub.common import ids
    from memoryhub.long_term_memory.models import Memory, RecalledMemory, RecallReceipt

    dice = random.Random(13)
    pks = list(Memory.objects.filter(workspace=workspace).order_by("-id").values_list("pk", flat=True)[:50_000])
    count = max(20, size.memories // 20)
    receipts = [
        RecallReceipt(
            workspace=workspace,
            public_id=ids.new_id("rcl"),
            query="how do we deploy on a friday",
            scope={"user": f"user-{number % USERS}"},
            result_count=5,
            tokens=400,
            actor_kind="key",
            actor_label=f"agent {number % 50}",
            created_at=now - timedelta(minutes=count - number),
        )
        for number in range(count)
    ]
    RecallReceipt.objects.bulk_create(receipts, batch_size=1_000)
    lines = [
        RecalledMemory(receipt=receipt, memory_id=dice.choice(pks), rank=rank, score=1 / rank, version=1)
        for receipt in receipts
        for rank in range(1, 6)
    ]
    lines += [
        RecalledMemory(receipt=receipt, memory_id=pks[0], rank=6, score=0.1, version=1)
        for receipt in receipts[:LARGE_RECALLS]
    ]
    RecalledMemory.objects.bulk_create(lines, batch_size=2_000)


def _fill_reviews(workspace: Any, size: Size, now: datetime) -> None:
    from memoryhub.common import ids
    from memoryhub.long_term_memory.models import Memory, ReviewItem

    pks = list(Memory.objects.filter(workspace=workspace).order_by("id").values_list("pk", flat=True)[: size.memories])
    count = max(20, size.memories // 50)
    items = []
    for number in range(count):
        kind = ("duplicate", "contradiction", "extracted", "fading")[number % 4]
        candidate = {"content": "Prefers tabs.", "scope": {"user": "user-1"}} if kind == "extracted" else None
        pair = kind in ("duplicate", "contradiction")
        items.append(
            ReviewItem(
                workspace=workspace,
                public_id=ids.new_id("rev"),
                kind=kind,
                state="open",
                memory_id=None if candidate else pks[number],
                other_id=pks[-1 - number] if pair and pks[-1 - number] != pks[number] else None,
                candidate=candidate,
                score=0.9,
                created_at=now - timedelta(minutes=count - number),
            )
        )
    ReviewItem.objects.bulk_create(items, batch_size=1_000, ignore_conflicts=True)


# --- The ledger ------------------------------------------------------------------------------------------------------
def _fill_ledger(workspace: Any, size: Size, now: datetime) -> None:
    from memoryhub.prompt_cache.models import Diagnosis, UsageRecord

    ledger.fill(workspace, min(size.records, WRITTEN), start=now - timedelta(days=ledger.DAYS) + timedelta(minutes=5))
    _copy_records(workspace, size.records // WRITTEN - 1)
    dice = random.Random(17)
    records = UsageRecord.objects.of(workspace).filter(pk__in=_every_tenth(workspace)).order_by("id")
    names = ("pk", "occurred_at", "session", "project", "model")
    causes = ("ttl_expired", "messages_changed", "tools_changed", "system_changed", "model_changed")
    found = []
    for pk, at, session, project, model in records.values_list(*names).iterator(chunk_size=5_000):
        missed = dice.randrange(1_000, 90_000)
        found.append(
            Diagnosis(
                record_id=pk,
                workspace=workspace,
                occurred_at=at,
                session=session,
                project=project,
                model=model,
                verdict="miss",
                cause=causes[dice.randrange(5)],
                detail="reordered",
                kind="order",
                path=f"tools[{dice.randrange(12)}]",
                fix="Keep the tools in one order.",
                basis="usage" if pk % 3 else "hashes",
                expected_tokens=missed,
                missed_tokens=missed,
                missed_pico=missed * 4_000_000,
                reported=True,
                provider_reason="tools_changed" if pk % 4 == 0 else "",
                agrees=True if pk % 4 == 0 else None,
                created_at=at,
            )
        )
    Diagnosis.objects.bulk_create(found, batch_size=1_000)


def _copy_records(workspace: Any, times: int) -> None:
    """The same responses a few times more, of other sessions, and the roll-ups over all of them."""
    from django.db import connection

    from memoryhub.prompt_cache.models import UsageRecord
    from memoryhub.prompt_cache.services.rollups import rebuild_rollups

    if times < 1:
        return
    names = [field.column for field in UsageRecord._meta.concrete_fields if field.column != "id"]
    columns, table = ", ".join(f'"{name}"' for name in names), UsageRecord._meta.db_table
    with connection.cursor() as cursor:
        for number in range(1, times + 1):
            changed = {name: f"{name} || '-{number}'" for name in ("message_id", "request_id", "session", "chain")}
            values = ", ".join(changed.get(name, f'"{name}"') for name in names)
            cursor.execute(
                f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} "
                "WHERE workspace_id = %s AND message_id NOT LIKE %s",
                [workspace.pk, "%-%"],
            )
    rebuild_rollups(workspace=workspace)


def _every_tenth(workspace: Any) -> Any:
    from django.db.models.functions import Mod

    from memoryhub.prompt_cache.models import UsageRecord

    rows = UsageRecord.objects.of(workspace).annotate(rest=Mod("id", 10))
    return rows.filter(rest=0).values("pk")


# --- Sessions and the tool cache -------------------------------------------------------------------------------------
def _fill_sessions(workspace: Any, size: Size) -> list[Any]:
    from memoryhub.workspaces.services import ensure_agent, ensure_sessions

    agents = [ensure_agent(workspace=workspace, name=f"agent-{number}") for number in range(AGENTS)]
    count = max(3, size.records // RECORDS_A_SESSION)
    made = ensure_sessions(workspace=workspace, sids=[f"session-{number}" for number in range(count)])
    sessions = [made[f"session-{number}"] for number in range(count)]
    for number, session in enumerate(sessions):
        session.agent, session.user = agents[number % AGENTS], f"user-{number % USERS}"
        session.project, session.title = f"/srv/projects/project-{number % PROJECTS}", f"Task {number}"
        session.last_active_at -= timedelta(minutes=number)
    type(sessions[0]).objects.bulk_update(
        sessions, ["agent", "user", "project", "title", "last_active_at"], batch_size=200
    )
    return sessions


def _fill_events(workspace: Any, size: Size, sessions: list[Any]) -> None:
    """The first session has over 10,000 events and forks all along; the others a day's work each."""
    from memoryhub.session_cache.services.events import append_events, fork_session

    large = min(LARGE_SESSION, size.events // 2)
    ids: list[str] = []
    for start in range(0, large, 500):
        done = append_events(session=sessions[0], events=_events(min(500, large - start), start))
        ids += [item.id for item in done.items]
    for number in range(FORKS):
        at = ids[len(ids) * (number + 1) // (FORKS + 1)]
        fork = fork_session(workspace=workspace, session=sessions[0], at=at, sid=f"session-0-fork-{number}")
        append_events(session=fork, events=_events(5, number))
        append_events(session=sessions[0], events=_events(5, number, parent=at))
    append_events(session=sessions[0], events=_events(5, 99, parent=ids[-1]))  # the head is the long way again
    left = size.events - large
    for session in sessions[1:]:
        if left <= 0:
            break
        append_events(session=session, events=_events(min(left, SESSION_EVENTS), left))
        left -= SESSION_EVENTS


def _events(count: int, seed: int, parent: str | None = None) -> list[Any]:
    """Messages and tool calls one after the other, the first one below `parent` (default: the head)."""
    from memoryhub.session_cache.services.events import GivenEvent

    dice = random.Random(seed)
    out, above = [], parent
    for number in range(count):
        text = " ".join(f"word{dice.randrange(4_000)}" for _ in range(30))
        name = f"e-{seed}-{dice.randrange(10**12)}" if parent else None
        kind = {4: "tool_use", 5: "tool_result"}.get(number % 6, "message")
        content: Any = text
        if kind == "tool_use":
            content = [{"type": kind, "id": f"t{seed}-{number}", "name": "read_file", "input": {"text": text}}]
        elif kind == "tool_result":
            content = [{"type": kind, "tool_use_id": f"t{seed}-{number - 1}", "content": text}]
        role = ("user", "assistant")[number % 2] if kind == "message" else None
        out.append(GivenEvent(kind, content, id=name, parent_id=above, role=role))
        above = name
    return out


def _fill_tool_cache(workspace: Any, size: Size, sessions: list[Any], now: datetime) -> None:
    from memoryhub.session_cache.models import ToolDependency, ToolPolicy, ToolResult, ToolSpace, ToolUsage

    tools = [f"tool_{number}" for number in range(TOOLS)]
    ToolPolicy.objects.bulk_create(
        ToolPolicy(
            workspace=workspace, tool=tool, cacheable=True, strategy="ttl", average_cost_ms=120.0, updated_at=now
        )
        for tool in tools
    )
    holders = sessions[: max(3, len(sessions) // 2)]
    spaces = ToolSpace.objects.bulk_create(
        [ToolSpace(workspace=workspace, session=one) for one in holders], batch_size=500
    )
    dice = random.Random(19)
    results = []
    for number in range(max(20, size.memories // 20)):
        place = number % len(holders)
        params = json.dumps({"path": f"src/module_{number}.py"})
        results.append(
            ToolResult(
                workspace=workspace,
                space=spaces[place],
                session=holders[place],
                key=hashlib.sha256(f"{workspace.pk}{params}".encode()).hexdigest(),
                tool=tools[number % TOOLS],
                params=params,
                params_hash=hashlib.sha256(params.encode()).hexdigest(),
                value=b'"' + b"x" * 300 + b'"',
                etag=f"etag-{number}",
                size_bytes=dice.randrange(300, 60_000),
                cost_ms=100.0,
                depends_on=json.dumps([{"kind": "file", "path": f"src/module_{number}.py"}]),
                strategy="ttl",
                generation=number,
                stored_at=now - timedelta(seconds=number),
                expires_at=now + timedelta(days=1),
                usable_until=now + timedelta(days=1),
                priority=dice.random(),
                hit_count=dice.randrange(60),
            )
        )
    ToolResult.objects.bulk_create(results, batch_size=500)
    ToolDependency.objects.bulk_create(
        [
            ToolDependency(result=one, workspace=workspace, kind="file", name=f"src/module_{number}.py")
            for number, one in enumerate(results)
        ],
        batch_size=1_000,
    )
    usage = [
        ToolUsage(
            workspace=workspace,
            session=one,
            tool=tools[number % TOOLS],
            hits=40,
            misses=9,
            missed_absent=9,
            saved_ms=4_000.0,
            lookup_ms=30.0,
        )
        for one in sessions
        for number in range(5)
    ]
    ToolUsage.objects.bulk_create(usage, batch_size=1_000)


# --- The hub ---------------------------------------------------------------------------------------------------------
def _fill_webhooks(workspace: Any, count: int, now: datetime) -> None:
    """A webhook that is paused, so that nobody is called, with all that it was told."""
    from memoryhub.audit.models import ChangeSet
    from memoryhub.common import ids
    from memoryhub.webhooks.models import Webhook, WebhookDelivery

    webhook = Webhook.objects.create(
        workspace=workspace, public_id=ids.new_id("whk"), url="https://hook.example/", active=False, created_at=now
    )
    change_set = ChangeSet.objects.filter(workspace=workspace).latest("id")
    messages = (
        WebhookDelivery(
            webhook=webhook,
            public_id=ids.new_id("whd"),
            event="memory.created",
            change_set=change_set,
            batch=ids.new_id("whb"),
            state="failed" if number % 100 == 0 else "delivered",
            attempts=1,
            status_code=200,
            took_ms=12.0,
            created_at=now - timedelta(minutes=number),
        )
        for number in range(count)
    )
    WebhookDelivery.objects.bulk_create(messages, batch_size=1_000)


def _fill_long_tail(workspace: Any, size: Size, now: datetime) -> None:
    """Jobs, invalidations, people, keys, prices."""
    from memoryhub.common import ids
    from memoryhub.invalidation.models import InvalidationRecord
    from memoryhub.prompt_cache.models import Price
    from memoryhub.work.models import Job
    from memoryhub.workspaces.models import ApiKey, Membership, User

    count = max(20, size.memories // 50)
    jobs = [
        Job(
            workspace=workspace,
            public_id=ids.new_id("job"),
            kind="decay",
            state="dead" if number % 100 == 0 else "done",
            run_after=now - timedelta(hours=number),
            created_at=now - timedelta(hours=number),
            finished_at=now - timedelta(hours=number),
            result={"fading": number, "archived": 3},
        )
        for number in range(count)
    ]
    Job.objects.bulk_create(jobs, batch_size=1_000)
    log = [
        InvalidationRecord(
            workspace=workspace,
            public_id=ids.new_id("inv"),
            epoch=number + 1,
            selector={"paths": [f"src/module_{number}.py"]},
            strategy="file",
            reason="the file changed",
            matched=3,
            invalidated=2,
            actor_kind="key",
            actor_id="k",
            actor_label="a watcher",
            created_at=now - timedelta(minutes=number),
        )
        for number in range(count)
    ]
    InvalidationRecord.objects.bulk_create(log, batch_size=1_000)
    _fill_webhooks(workspace, 5 * count, now)
    people = min(200, max(5, size.memories // 5_000))
    users = User.objects.bulk_create(User(username=f"user-{workspace.pk}-{number}") for number in range(people))
    Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role="editor", created_at=now) for user in users
    )
    ApiKey.objects.bulk_create(
        ApiKey(
            workspace=workspace,
            name=f"agent {number}",
            lookup=f"{workspace.pk % 1000:03d}{number:05d}",
            digest="0" * 64,
            scopes=["memories:read"],
            created_at=now,
        )
        for number in range(2 * people)
    )
    Price.objects.bulk_create(
        Price(
            workspace=workspace,
            model=f"house-model-{number}",
            input_rate=3_000_000,
            cache_write_5m_rate=3_750_000,
            cache_write_1h_rate=6_000_000,
            cache_read_rate=300_000,
            output_rate=15_000_000,
            created_at=now,
            updated_at=now,
        )
        for number in range(20)
    )


def _refresh_statistics() -> None:
    """What PostgreSQL's autovacuum does by itself; a hub on SQLite keeps no statistics."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
