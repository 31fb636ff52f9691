"""Why requests miss the cache: a short name for each cause, in the viewer's words."""

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


def cause_name(cause: str) -> str:
    """Return a cause's name; an unknown word as it is."""
    return str(NAMES.get(cause, cause.replace("_", " ")))
