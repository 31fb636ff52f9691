"""How events and reasons are named and shortened for people."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from django.utils.translation import gettext_lazy as _

EXCERPT_CHARACTERS = 600

KIND_WORDS = {
    "message": _("message"),
    "tool_use": _("tool call"),
    "tool_result": _("tool result"),
    "compaction": _("compaction"),
    "note": _("note"),
}
KIND_TONES = {"tool_use": "teal", "tool_result": "teal", "compaction": "warn", "note": ""}
ROLE_WORDS = {"user": _("user"), "assistant": _("assistant"), "system": _("system")}
PART_WORDS = {
    "system": _("System"),
    "tools": _("Tools"),
    "memories": _("Memories"),
    "summary": _("Summary"),
    "history": _("History"),
}
REASON_NAMES = {
    "absent": _("absent"),
    "expired": _("expired"),
    "stale": _("stale"),
    "invalidated": _("invalidated"),
    "evicted": _("evicted"),
    "uncacheable": _("uncacheable"),
}
REASON_WORDS = {
    "absent": _("absent: asked for the first time"),
    "expired": _("expired: its time was over"),
    "stale": _("stale: what it depends on has changed"),
    "invalidated": _("invalidated: somebody said it was wrong"),
    "evicted": _("evicted: there was no room"),
    "uncacheable": _("uncacheable: no policy allows it"),
}


# Translators: the ways in which cached results go stale
STRATEGY_WORDS = {
    "ttl": _("TTL"),
    "fingerprint": _("fingerprint"),
    "dependency": _("dependency"),
    "event": _("event"),
    "manual": _("manual"),
    "hybrid": _("hybrid"),
}


def strategy_label(strategy: str) -> str:
    """Return the invalidation strategy in the viewer's words."""
    return str(STRATEGY_WORDS.get(strategy, strategy))


def session_url(sid: str, **query: str) -> str:
    """Return the address of a session's page."""
    given = {name: value for name, value in query.items() if value}
    return f"/sessions/{quote(sid, safe='')}" + (f"?{urlencode(given)}" if given else "")


def excerpt(content: Any) -> str:
    """Return the beginning of what an event says, as text."""
    return _text(content)[:EXCERPT_CHARACTERS]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_text(block) for block in content[:20])
    if isinstance(content, dict):
        return _block(content)
    return json.dumps(content, ensure_ascii=False)


def _block(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind in ("text", "thinking"):
        return str(block.get(str(kind), ""))
    if kind == "tool_use" or {"name", "input"} <= block.keys():
        return f"{block.get('name', '')}({json.dumps(block.get('input', {}), ensure_ascii=False)[:EXCERPT_CHARACTERS]})"
    if kind == "tool_result" or "tool_use_id" in block:
        return _text(block.get("content", ""))
    if kind == "image":
        return str(_("[image]"))
    return json.dumps(block, ensure_ascii=False)[:EXCERPT_CHARACTERS]
