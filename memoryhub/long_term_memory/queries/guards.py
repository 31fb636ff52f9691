"""The guard settings of a workspace."""

from dataclasses import dataclass
from typing import Any

from memoryhub.workspaces.models import Workspace

SETTINGS_KEY = "memory_guards"


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What is done with suspicious writes. Stored in the workspace's settings under `memory_guards`."""

    redact_secrets: bool = True
    quarantine_instructions: bool = True
    skip_recalled: bool = True
    quarantine_unknown_agents: bool = False  # off: an agent is registered by its first write
    find_duplicates: bool = True
    max_writes_per_minute: int = 30_000  # of one key or person, in memories; 0 is no limit
    extracted_memories: str = "review"  # review | unreviewed: where extraction puts what it found


def get_guard_settings(workspace: Workspace) -> GuardSettings:
    """The workspace's guards; unknown names in the stored settings are ignored."""
    stored: dict[str, Any] = workspace.settings.get(SETTINGS_KEY) or {}
    known = {name: value for name, value in stored.items() if name in GuardSettings.__dataclass_fields__}
    return GuardSettings(**known)
