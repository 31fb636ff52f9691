"""Which entries a selector names, what a session's cache holds, and how well it does."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum

from memoryhub.common import errors
from memoryhub.invalidation.domain.dependency import clean_path
from memoryhub.invalidation.domain.selector import Selector, ancestors, is_glob, tool_matches
from memoryhub.session_cache.models import ToolDependency, ToolKey, ToolResult, ToolSpace, ToolUsage
from memoryhub.session_cache.queries import tree
from memoryhub.workspaces.models import Session, Workspace


class UnknownToolResult(errors.NotFound):
    slug = "unknown-tool-result"
    title = "Unknown tool result"


def select(workspace: Workspace, selector: Selector) -> QuerySet[ToolResult]:
    """Return the entries that an announced change touches: the same rule as Selector.touches, as one query."""
    entries = ToolResult.objects.filter(workspace=workspace)
    if selector.unknown_write:
        return entries.none()
    if selector.session:
        entries = entries.filter(session__sid=selector.session)
    if selector.tool:
        entries = entries.filter(_tool(workspace, selector.tool))
    if selector.key:
        entries = entries.filter(key=selector.key)
    if selector.params_hash:
        entries = entries.filter(params_hash=selector.params_hash)
    if selector.event:
        entries = entries.filter(source_event=selector.event)
    if selector.tag:
        entries = entries.filter(_tag(workspace, selector.tag))
    if selector.path:
        entries = entries.filter(_path(workspace, selector.path))
    if selector.tool_or_tag:
        entries = entries.filter(_tool(workspace, selector.tool_or_tag) | _tag(workspace, selector.tool_or_tag))
    return entries


def _tool(workspace: Workspace, pattern: str) -> Q:
    if not is_glob(pattern):
        return Q(tool=pattern)
    tools = ToolResult.objects.filter(workspace=workspace).values_list("tool", flat=True).distinct()
    return Q(tool__in=[tool for tool in tools if tool_matches(pattern, tool)])


def _dependents(workspace: Workspace, condition: Q) -> Q:
    found = ToolDependency.objects.filter(condition, workspace=workspace)
    return Q(pk__in=found.values("result_id"))


def _tag(workspace: Workspace, name: str) -> Q:
    return _dependents(workspace, Q(kind="tag", name=name))


def _path(workspace: Workspace, path: str) -> Q:
    changed = clean_path(path)
    below = changed.rstrip("/") + "/"
    beyond = below[:-1] + "0"  # the character after "/": the end of everything that starts with `below`
    itself = Q(kind__in=("file", "directory"), name=changed)
    beneath = Q(kind__in=("file", "directory"), name__gte=below, name__lt=beyond)
    listings = Q(kind="directory", name__in=ancestors(changed))
    return _dependents(workspace, itself | beneath | listings)


def list_entries(
    workspace: Workspace, *, sid: str | None = None, tool: str | None = None, text: str = ""
) -> QuerySet[ToolResult]:
    """Return entries without their values, to be cut by cursor; `text` stands in their parameters or dependencies."""
    entries = _without_values(ToolResult.objects.filter(workspace=workspace))
    if sid is not None:
        entries = entries.filter(session__sid=sid)
    if text:
        entries = entries.filter(Q(params__icontains=text) | Q(depends_on__icontains=text))
    return entries.filter(tool=tool) if tool else entries


def load_entries(pks: Sequence[int]) -> dict[int, ToolResult]:
    """Return entries without their values, by their rows' numbers."""
    return _without_values(ToolResult.objects.all()).in_bulk(pks)


def _without_values(entries: QuerySet[ToolResult]) -> QuerySet[ToolResult]:
    return entries.defer("value").select_related("session")


def get_entry(workspace: Workspace, sid: str, key: str) -> ToolResult:
    """Return one entry of a session by its key."""
    entry = list_entries(workspace, sid=sid).filter(key=key).first()
    if entry is None:
        raise UnknownToolResult("The session has no stored result with this key.")
    return entry


_FIGURES = (
    "hits", "misses", "missed_absent", "missed_expired", "missed_stale", "missed_invalidated", "missed_evicted",
    "missed_uncacheable", "refused", "saved_ms", "lookup_ms", "verified", "verified_stale",
)  # fmt: skip


def summarize_session(session: Session, *, default_capacity_bytes: int) -> dict[str, Any]:
    """Return a session's figures: hits, misses, evictions, bytes, capacity, time saved; in all and by tool."""
    space = ToolSpace.objects.filter(session=session).first()
    by_tool = summarize_tools(session.workspace, session=session)
    return {
        "hits": sum(row["hits"] for row in by_tool),
        "misses": sum(row["misses"] for row in by_tool),
        "evictions": space.evicted_count if space else 0,
        "entries": space.entry_count if space else 0,
        "bytes": space.used_bytes if space else 0,
        "capacity_bytes": (space.capacity_bytes if space else None) or default_capacity_bytes,
        "saved_ms": round(sum(row["saved_ms"] for row in by_tool), 3),
        "by_tool": by_tool,
    }


def summarize_tools(workspace: Workspace, *, session: Session | None = None) -> list[dict[str, Any]]:
    """Return the figures of each tool, the most used first; three queries, however many tools there are."""
    usage = ToolUsage.objects.filter(workspace=workspace)
    entries = ToolResult.objects.filter(workspace=workspace)
    if session is not None:
        usage, entries = usage.filter(session=session), entries.filter(session=session)
    held = {
        row["tool"]: row
        for row in entries.values("tool").annotate(entries=Count("id"), bytes=Sum("size_bytes")).order_by("tool")
    }
    rows = usage.values("tool").annotate(**{f"sum_{name}": Sum(F(name)) for name in _FIGURES}).order_by("tool")
    figures = {row["tool"]: {name: row[f"sum_{name}"] or 0 for name in _FIGURES} for row in rows}
    shaped = [_shape(tool, figures.get(tool, dict.fromkeys(_FIGURES, 0)), held.get(tool)) for tool in {*figures, *held}]
    return sorted(shaped, key=lambda row: (-(row["hits"] + row["misses"]), row["tool"]))


def _shape(tool: str, figures: dict[str, Any], held: dict[str, Any] | None) -> dict[str, Any]:
    lookups = figures["hits"] + figures["misses"]
    return {
        "tool": tool,
        "hits": figures["hits"],
        "misses": figures["misses"],
        "misses_by_reason": {
            name.removeprefix("missed_"): figures[name]
            for name in _FIGURES
            if name.startswith("missed_") and figures[name]
        },
        "hit_rate": figures["hits"] / lookups if lookups else None,
        "refused": figures["refused"],
        "entries": held["entries"] if held else 0,
        "bytes": held["bytes"] if held else 0,
        "saved_ms": round(figures["saved_ms"], 3),
        "lookup_ms": round(figures["lookup_ms"], 3),
        "verified": figures["verified"],
        "stale_rate": figures["verified_stale"] / figures["verified"] if figures["verified"] else None,
    }


def count_seen_after(session: Session, event_id: str) -> int:
    """Return how many of the session's results were seen on events that a node does not see: they need proof there."""
    target = tree.get_event(session, event_id)
    path = tree.node_of(target).full_path
    entries = ToolResult.objects.filter(session=session, seen_branch_id__isnull=False)
    within = Q(pk__in=[])
    for branch, upto in path:
        within |= Q(seen_branch_id=branch, seen_seq__lte=upto)
    return entries.exclude(within).count()


def is_computing(workspace: Workspace, now: datetime) -> bool:
    """Tell whether somebody holds a lease: what they read may be from before a change that is announced now."""
    return ToolKey.objects.filter(workspace=workspace, lease_expires_at__gt=now).exists()
