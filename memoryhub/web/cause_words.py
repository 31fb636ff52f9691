"""Why requests miss the cache, in the viewer's words: a short name for charts, and what to change."""

from typing import Any

from django.utils.translation import gettext_lazy as _

NAMES: dict[str, Any] = {
    "none": _("healthy"),
    "workspace_changed": _("Workspace changed"),
    "model_changed": _("Model changed"),
    "speed_changed": _("Speed changed"),
    "tools_changed": _("Tools changed"),
    "web_tools_changed": _("Web tools switched"),
    "citations_changed": _("Citations switched"),
    "system_changed": _("System prompt changed"),
    "thinking_changed": _("Thinking changed"),
    "effort_changed": _("Effort changed"),
    "tool_choice_changed": _("Tool choice changed"),
    "image_toggled": _("Image came or went"),
    "thinking_stripped": _("Thinking stripped"),
    "messages_changed": _("Earlier message changed"),
    "below_minimum": _("Below the minimum"),
    "no_marker": _("No marker"),
    "varying_tail": _("Marker on a varying tail"),
    "lookback_exceeded": _("Lookback exceeded"),
    "ttl_expired": _("Lifetime over"),
    "concurrent_start": _("Started at the same time"),
    "unknown": _("Unknown"),
}
WHAT_TO_CHANGE: dict[str, Any] = {
    "workspace_changed": _(
        "Send a conversation's requests from one workspace: caches are not shared between workspaces."
    ),
    "model_changed": _("Stay on one model within a conversation; each model has a cache of its own."),
    "speed_changed": _("Keep the speed the same within a conversation; fast and standard have separate caches."),
    "tools_changed": _("Send the same tools in the same order, byte for byte, with every request of a conversation."),
    "web_tools_changed": _("Decide once per conversation whether web search and web fetch are on."),
    "citations_changed": _("Switch citations on or off for a whole conversation."),
    "system_changed": _("Keep the system prompt fixed and put what varies behind the last marker."),
    "thinking_changed": _("Keep thinking and its budget the same within a conversation."),
    "effort_changed": _("Keep the effort the same within a conversation, or set it per message."),
    "tool_choice_changed": _("Keep the tool choice the same within a conversation; ask in the last message instead."),
    "image_toggled": _("Send an image from the first request on, or describe it in text."),
    "thinking_stripped": _(
        "Put a marker before the thinking turn: this model drops earlier thinking at a new user message."
    ),
    "messages_changed": _("Only append to a conversation; never edit, drop or reorder what was sent."),
    "below_minimum": _("Move the marker further down: the prefix is shorter than the model caches."),
    "no_marker": _("Put cache_control on the last block that stays the same, or switch automatic caching on."),
    "varying_tail": _("Move the marker to the block before the one that varies."),
    "lookback_exceeded": _("Add a second marker within 20 positions of the last write."),
    "ttl_expired": _("Use the 1-hour lifetime, or keep the entry alive: the pauses are longer than it lives."),
    "concurrent_start": _("Send one request first and wait for its first byte, then fan out."),
    "unknown": _("Nothing to change unless it repeats: the provider may have evicted the entry."),
}


def cause_name(cause: str) -> str:
    """Return a cause's name; an unknown word as it is."""
    return str(NAMES.get(cause, cause.replace("_", " ")))
