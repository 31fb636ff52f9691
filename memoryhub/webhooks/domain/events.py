"""Which event an action of the log is told as."""

MEMORY_CREATED = "memory.created"
MEMORY_UPDATED = "memory.updated"
MEMORY_REMOVED = "memory.removed"
MEMORY_FADED = "memory.faded"
CACHE_INVALIDATED = "cache.invalidated"
PRICES_CHANGED = "prices.changed"
SETTINGS_CHANGED = "settings.changed"
TEST = "test"  # asked for by a person; every webhook hears it
EVENTS = (
    MEMORY_CREATED,
    MEMORY_UPDATED,
    MEMORY_REMOVED,
    MEMORY_FADED,
    CACHE_INVALIDATED,
    PRICES_CHANGED,
    SETTINGS_CHANGED,
)

_ACTIONS = {
    MEMORY_CREATED: ("remember", "import", "extract"),
    MEMORY_UPDATED: (
        "edit", "tag", "pin", "archive", "rename", "supersede", "restore", "redact", "bulk", "revert", "rename tag",
        "merge tags", "review", "feedback",
    ),
    MEMORY_REMOVED: ("forget", "erase", "empty_trash", "delete_store"),
    MEMORY_FADED: ("decay",),
    CACHE_INVALIDATED: ("tool_results.invalidated",),
    PRICES_CHANGED: ("prices.store", "prices.remove"),
    SETTINGS_CHANGED: (
        "policy", "tool_policy.created", "tool_policy.changed", "create_key", "revoke_key", "add_member", "remove_member",
        "set_role", "describe_workspace", "doctor.excerpts_kept", "doctor.excerpts_removed",
    ),
}  # fmt: skip
_EVENT_OF = {action: event for event, actions in _ACTIONS.items() for action in actions}


def event_of(action: str) -> str | None:
    """Return the event that an action is told as, None for one that concerns nobody outside (a saved filter)."""
    return _EVENT_OF.get(action)


def is_wanted(event: str, chosen: list[str]) -> bool:
    """Whether a webhook that chose these events hears this one; who chose none hears all."""
    return event == TEST or not chosen or event in chosen
