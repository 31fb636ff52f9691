"""The words for what was done, by whom and through which door."""

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

ACTIONS: dict[str, Any] = {
    "remember": gettext_lazy("remembered"),
    "edit": gettext_lazy("edited"),
    "tag": gettext_lazy("tagged"),
    "pin": gettext_lazy("pinned or unpinned"),
    "archive": gettext_lazy("archived"),
    "rename": gettext_lazy("renamed files"),
    "supersede": gettext_lazy("superseded"),
    "forget": gettext_lazy("forgot"),
    "restore": gettext_lazy("restored"),
    "redact": gettext_lazy("redacted a version of"),
    "erase": gettext_lazy("erased"),
    "bulk": gettext_lazy("changed in bulk"),
    "revert": gettext_lazy("took a change back"),
    "rename tag": gettext_lazy("renamed a tag"),
    "merge tags": gettext_lazy("merged tags"),
    "decay": gettext_lazy("let memories fade"),
    "empty_trash": gettext_lazy("emptied the trash"),
    "import": gettext_lazy("imported"),
    "review": gettext_lazy("decided a review"),
    "policy": gettext_lazy("changed the decay policy"),
    "feedback": gettext_lazy("rated a memory"),
    "save_filter": gettext_lazy("saved a filter"),
    "remove_filter": gettext_lazy("removed a filter"),
    "delete_store": gettext_lazy("deleted a store"),
    "create_store": gettext_lazy("made a store"),
    "archive_store": gettext_lazy("archived a store"),
    "update_store": gettext_lazy("changed a store"),
    "embed": gettext_lazy("embedded"),
    "extract": gettext_lazy("extracted"),
    "doctor.excerpts_kept": gettext_lazy("keeps excerpts of requests"),
    "doctor.excerpts_removed": gettext_lazy("removed excerpts of requests"),
    "prices.store": gettext_lazy("stored prices"),
    "prices.remove": gettext_lazy("removed a price"),
    "reprice": gettext_lazy("repriced"),
    "tool_policy.created": gettext_lazy("made a tool policy"),
    "tool_policy.changed": gettext_lazy("changed a tool policy"),
    "tool_results.invalidated": gettext_lazy("invalidated tool results"),
    "create_key": gettext_lazy("made a key"),
    "revoke_key": gettext_lazy("revoked a key"),
    "create_webhook": gettext_lazy("made a webhook"),
    "change_webhook": gettext_lazy("changed a webhook"),
    "pause_webhook": gettext_lazy("paused a webhook"),
    "resume_webhook": gettext_lazy("resumed a webhook"),
    "renew_webhook_secret": gettext_lazy("made a webhook a new secret"),
    "remove_webhook": gettext_lazy("removed a webhook"),
    "add_member": gettext_lazy("added a member"),
    "remove_member": gettext_lazy("removed a member"),
    "set_role": gettext_lazy("changed a role"),
    "describe_workspace": gettext_lazy("changed the workspace"),
}
DOORS: dict[str, Any] = {
    "web": gettext_lazy("web page"),
    "api": gettext_lazy("API"),
    "rest": gettext_lazy("API"),
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
