"""The words for what was done, by whom and through which door."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

ACTIONS: dict[str, Any] = {
    "remember": gettext_lazy("remembered"),
    "edit": gettext_lazy("edited"),
    "tag": gettext_lazy("tagged"),
    "pin": gettext_lazy("pinned"),
    "supersede": gettext_lazy("superseded"),
    "forget": gettext_lazy("forgot"),
    "restore": gettext_lazy("restored"),
    "erase": gettext_lazy("erased"),
    "bulk": gettext_lazy("changed in bulk"),
    "revert": gettext_lazy("reverted a change"),
    "decay": gettext_lazy("let memories fade"),
    "import": gettext_lazy("imported"),
    "review": gettext_lazy("reviewed"),
    "policy": gettext_lazy("changed the decay policy"),
}
DOORS: dict[str, Any] = {
    "web": gettext_lazy("web page"),
    "api": gettext_lazy("API"),
    "mcp": gettext_lazy("MCP"),
    "stores": gettext_lazy("memory stores"),
    "tool": gettext_lazy("memory tool"),
    "job": gettext_lazy("job"),
    "command": gettext_lazy("command"),
    "import": gettext_lazy("import"),
}
ACTOR_KINDS: dict[str, Any] = {
    "user": gettext_lazy("%(name)s"),
    "key": gettext_lazy("key %(name)s"),
    "job": gettext_lazy("job %(name)s"),
    "command": gettext_lazy("command %(name)s"),
}


def describe_action(action: str) -> str:
    """Return the action in the viewer's words; an unknown one as it is."""
    return str(ACTIONS.get(action, action.replace("_", " ").replace(".", " ")))


def door_label(door: str) -> str:
    """Return the door's name."""
    return str(DOORS.get(door, door))


def actor_label(kind: str, label: str) -> str:
    """Return who did it: a person by name, the others with what they are."""
    return str(ACTOR_KINDS.get(kind, "%(name)s")) % {"name": label or _("unknown")}
