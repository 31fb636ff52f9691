"""What the pages of the session cache show: each function is a fixed number of queries, however many rows there are."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from memoryhub.invalidation.queries import get_unknown_write
from memoryhub.session_cache.domain.context_window import part_of
from memoryhub.session_cache.domain.event_tree import NOTE, Node, Path
from memoryhub.session_cache.models import Branch, SessionEvent, ToolPolicy, ToolResult, ToolUsage
from memoryhub.session_cache.queries import tool_results, tree
from memoryhub.workspaces.models import Session, Workspace

MOST_BRANCHES = 40  # drawn; a session with more shows the most recent ones


def search_sessions(found: QuerySet[Session], text: str) -> QuerySet[Session]:
    """Return the sessions whose id or title holds the text."""
    return found.filter(Q(sid__icontains=text) | Q(title__icontains=text)) if text else found


def count_results_by_session(session_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return (entries, hits) of each session; one query."""
    rows = (
        ToolResult.objects.filter(session_id__in=list(session_ids))
        .values("session_id")
        .annotate(entries=Count("id"), hits=Sum("hit_count"))
    )
    return {row["session_id"]: (row["entries"], row["hits"] or 0) for row in rows}


@dataclass(frozen=True, slots=True)
class Lane:
    """One branch as it is drawn: from where, how long, and where it ends."""

    branch_id: int
    parent_id: int | None
    start: int  # how many events lie above its first one
    length: int
    tip: str  # id of its last conversation event; empty where it has only notes
    is_current: bool


def list_lanes(session: Session, path: Path) -> list[Lane]:
    """Return the session's branches for drawing, the oldest first; those that lead to the node are marked."""
    newest = Branch.objects.filter(session=session).order_by("-id")[:MOST_BRANCHES]
    branches = sorted(newest, key=lambda branch: branch.pk)
    tips = dict(
        SessionEvent.objects.filter(branch__in=branches, seq=F("branch__tip_seq")).values_list("branch_id", "event_id")
    )
    current = {branch for branch, _ in path}
    return [
        Lane(
            branch.pk,
            branch.parent_id,
            sum(upto for _, upto in branch.inherited),
            branch.head_seq,
            tips.get(branch.pk, ""),
            branch.pk in current,
        )
        for branch in branches
    ]


def walk_back(path: Path, *, limit: int) -> tuple[list[SessionEvent], str]:
    """Return the newest events on the way to a node, newest first, and the id of the next older one ("" at the root)."""
    rows: list[SessionEvent] = []
    for branch, upto in reversed(path):
        stretch = SessionEvent.objects.filter(branch_id=branch, seq__lte=upto).order_by("-seq")
        rows.extend(stretch[: limit + 1 - len(rows)])
        if len(rows) > limit:
            break
    older = next((row for row in rows[limit:] if row.kind != NOTE), None)
    return rows[:limit], older.event_id if older else (rows[limit].parent_event_id if len(rows) > limit else "")


@dataclass(frozen=True, slots=True)
class Offshoot:
    """A branch that grows from an event on the page, maybe in another session."""

    sid: str
    tip: str
    length: int


def list_offshoots(path: Path, events: Iterable[SessionEvent]) -> dict[tuple[int, int], list[Offshoot]]:
    """Return what grows from these events besides the way shown, by (branch, number); three queries.

    That is every branch that starts at one of them, and the rest of a branch that the way leaves there.
    """
    places = {(event.branch_id, event.seq) for event in events}
    if not places:
        return {}
    way = dict(path)
    starting = Branch.objects.filter(
        parent_id__in={branch for branch, _ in places}, fork_seq__in={seq for _, seq in places}
    ).exclude(pk__in=way)
    left = Branch.objects.filter(pk__in=[branch for branch, upto in path if (branch, upto) in places])
    grown = [
        *(((b.parent_id or 0, b.fork_seq), b, b.head_seq) for b in starting.select_related("session")[:200]),
        *(
            ((b.pk, way[b.pk]), b, b.head_seq - way[b.pk])
            for b in left.select_related("session")
            if b.tip_seq > way[b.pk]
        ),
    ]
    branches = [branch for _, branch, _ in grown]
    tips = dict(
        SessionEvent.objects.filter(branch__in=branches, seq=F("branch__tip_seq")).values_list("branch_id", "event_id")
    )
    found: dict[tuple[int, int], list[Offshoot]] = {}
    for place, branch, length in grown:
        if place in places:
            found.setdefault(place, []).append(Offshoot(branch.session.sid, tips.get(branch.pk, ""), length))
    return found


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """How many events and tokens a window has, by part."""

    events: int
    tokens: int
    parts: dict[str, int]  # system, tools, memories, summary, history -> tokens
    compactions: int


_TOKENS = {"own": Sum(F("tokens") - F("memory_tokens")), "recalled": Sum("memory_tokens")}


def summarize_window(path: Path) -> WindowSummary:
    """Return a window's tokens by part without reading any content: it looks at ranges of an index."""
    parts = {"system": 0, "tools": 0, "memories": 0, "summary": 0, "history": 0}
    events = compactions = 0
    for index in range(len(path) - 1, -1, -1):
        branch, upto = path[index]
        stretch = SessionEvent.objects.filter(branch_id=branch, seq__lte=upto)
        cut = stretch.filter(kind="compaction").order_by("-seq").values_list("seq", flat=True).first()
        window = stretch.filter(seq__gte=cut or 1).exclude(kind=NOTE)
        rows = window.values("kind", "role").annotate(count=Count("id"), **_TOKENS).order_by("kind", "role")
        for row in rows:
            events += row["count"]
            parts[part_of(row["kind"], row["role"])] += row["own"] or 0
            parts["memories"] += row["recalled"] or 0
        if cut is not None:
            compactions = 1
            before: Path = (*path[:index], (branch, cut - 1))
            system = SessionEvent.objects.along(before).filter(role="system").exclude(kind="compaction")
            found = system.aggregate(count=Count("id"), **_TOKENS)
            parts["system"] += found["own"] or 0
            parts["memories"] += found["recalled"] or 0
            events += found["count"]
            break
    return WindowSummary(events, sum(parts.values()), parts, compactions)


def find_node(session: Session, event_id: str | None) -> tuple[SessionEvent, Node] | None:
    """Return the event that the page stands at (default: the head) with its place, or None before the first event."""
    session_tree = tree.find_tree(session)
    event = tree.get_event(session, event_id) if event_id else tree.head_event(session_tree)
    if event is None:
        return None
    event = tree.conversation_node(session, session_tree, event)
    return event, tree.node_of(event)


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """One tool's row: what it was asked, what that saved and what it cost."""

    tool: str
    hits: int
    misses: int
    hit_rate: float | None
    top_miss: str
    entries: int
    bytes: int
    saved_ms: float
    tool_ms: float | None  # what a run takes on average
    lookup_ms: float | None  # what a look-up takes in the hub
    stale_rate: float | None
    verified: int
    policy: ToolPolicy | None

    @property
    def saves_ms_a_call(self) -> float | None:
        """What a look-up saves on average, over hits and misses."""
        asked = self.hits + self.misses
        return self.saved_ms / asked if asked else None

    @property
    def pays(self) -> bool | None:
        """Whether looking up costs less than it saves; None before anything is known."""
        if self.saves_ms_a_call is None or self.lookup_ms is None:
            return None
        return self.saves_ms_a_call >= self.lookup_ms


def list_tools(workspace: Workspace) -> list[ToolFigures]:
    """Return every tool that has a policy, a stored result or a look-up; four queries."""
    policies = {policy.tool: policy for policy in ToolPolicy.objects.filter(workspace=workspace)}
    rows = {row["tool"]: row for row in tool_results.summarize_tools(workspace)}
    return sorted(
        (_figures(tool, rows.get(tool), policies.get(tool)) for tool in {*policies, *rows}),
        key=lambda figures: (-(figures.hits + figures.misses), figures.tool),
    )


def _figures(tool: str, row: dict[str, Any] | None, policy: ToolPolicy | None) -> ToolFigures:
    row = row or {}
    hits, misses = row.get("hits", 0), row.get("misses", 0)
    reasons: dict[str, int] = row.get("misses_by_reason", {})
    return ToolFigures(
        tool=tool,
        hits=hits,
        misses=misses,
        hit_rate=row.get("hit_rate"),
        top_miss=max(reasons, key=lambda reason: reasons[reason]) if reasons else "",
        entries=row.get("entries", 0),
        bytes=row.get("bytes") or 0,
        saved_ms=row.get("saved_ms", 0.0),
        tool_ms=policy.average_cost_ms if policy else None,
        lookup_ms=row["lookup_ms"] / (hits + misses) if hits + misses else None,
        stale_rate=row.get("stale_rate"),
        verified=row.get("verified", 0),
        policy=policy,
    )


@dataclass(frozen=True, slots=True)
class Doubt:
    """Since when results have to prove their files, because of which tool, and the tools whose results need not."""

    epoch: int
    tool: str
    exempt: frozenset[str]

    def concerns(self, entry: ToolResult, *, has_files: bool) -> bool:
        """Tell whether the entry is older than the unknown write and made of files, or of a folder that it names not."""
        return entry.generation < self.epoch and (has_files or bool(entry.root)) and entry.tool not in self.exempt


def get_doubt(workspace: Workspace) -> Doubt:
    """Return what the last run of a tool that may have changed any file means for results; two queries."""
    epoch, tool = get_unknown_write(workspace)
    exempt = ToolPolicy.objects.filter(workspace=workspace, ignore_unknown_writes=True)
    return Doubt(epoch, tool, frozenset(exempt.values_list("tool", flat=True)))


def count_lookups(workspace: Workspace) -> tuple[int, int, float]:
    """Return a workspace's hits, misses and milliseconds saved; one query."""
    sums = ToolUsage.objects.filter(workspace=workspace).aggregate(
        hits=Sum("hits"), misses=Sum("misses"), saved=Sum("saved_ms")
    )
    return sums["hits"] or 0, sums["misses"] or 0, sums["saved"] or 0.0
