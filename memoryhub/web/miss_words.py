"""How a request changed, on what the doctor's answer rests, and the planner's plans, in people's words."""

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

DETAILS: dict[str, Any] = {
    "added": pgettext_lazy("how a request changed", "added"),
    "removed": pgettext_lazy("how a request changed", "removed"),
    "reordered": pgettext_lazy("how a request changed", "reordered"),
    "edited": pgettext_lazy("how a request changed", "edited"),
    "key_order": pgettext_lazy("how a request changed", "other key order"),
}
KINDS: dict[str, Any] = {
    "timestamp": _("a clock"),
    "uuid": _("an id"),
    "path": _("a path"),
    "counter": _("a counter"),
    "number": _("a number"),
    "order": _("the order"),
    "key_order": _("the order of keys"),
    "text": _("text"),
}
VERDICTS: dict[str, tuple[Any, str]] = {
    "first": (_("First request"), ""),
    "hit": (_("Hit"), "good"),
    "miss": (_("Miss"), "bad"),
}
BASES: dict[str, Any] = {
    "body": _("compared text by text"),
    "hashes": _("compared by hashes; the text was gone"),
    "usage": _("from usage and time alone; the request was not sent along"),
    "requests": _("replayed from the requests' hashes and lengths; tokens are apportioned to blocks by length"),
    "mixed": _("some requests by their hashes, the others by usage alone"),
}
# What the provider says, and what our causes are called in its words.
PROVIDER: dict[str, Any] = {
    "model_changed": _("Model changed"),
    "system_changed": _("System prompt changed"),
    "tools_changed": _("Tools changed"),
    "messages_changed": _("Messages changed"),
    "previous_message_not_found": _("Previous message not found"),
    "unavailable": _("Unavailable"),
    "no_change": _("No change"),
    "no_bodies": _("The request was not sent along"),
}
PLANS: dict[str, tuple[Any, Any]] = {
    "none": (_("No caching"), _("every token at its plain price")),
    "auto-5m": (_("Automatic, 5 minutes"), _("one marker on the last block")),
    "1h": (_("Automatic, 1 hour"), _("one marker on the last block, kept for an hour")),
    "mixed": (_("Mixed"), _("tools and system for an hour, the conversation for five minutes")),
    "keepalive": (
        _("Keep-alive"),
        _("five minutes, and a ping every four through a pause, until a rebuild is cheaper"),
    ),
    "actual": (_("As sent"), _("the markers that the requests really carried")),
}


def change_label(detail: str | None, kind: str | None) -> str:
    """What changed and how: "edited, a clock"."""
    words = [
        str(DETAILS.get(detail or "", "")),
        str(KINDS.get(kind or "", "")) if kind not in (detail, "order") else "",
    ]
    # Translators: what stands between two words of a list
    return str(pgettext_lazy("between two words", ", ")).join(word for word in words if word)
